// Contract 5, "Statistics": calls, errors and latency by app.
import type { ReadStatsData, ReadStatsResponses } from '../../generated/api/types.gen.ts';
import { get } from './request.ts';

export type Stats = ReadStatsResponses[200];
export type AppStats = Stats['apps'][number];

/** Returns the statistics of all apps of a project. @param windowS seconds */
export async function readStats(project: string, windowS: number, signal?: AbortSignal): Promise<Stats> {
  const apps: AppStats[] = [];
  let cursor: string | undefined;
  for (;;) {
    const query = { window: windowS, ...(cursor !== undefined && { cursor }) };
    const page = await get<ReadStatsData, Stats>('/v4/{project}/stats', { path: { project }, query, signal });
    apps.push(...page.apps);
    cursor = page.cursor;
    if (cursor === undefined) return { ...page, apps };
  }
}
