// Contract 7, "Versions": a worker's report about the version that it prepares, by version-report.lua.
import { codeIn, type Script } from '../scripts.ts';

export interface VersionReport {
  readonly app: string;
  readonly version: string;
  /** The number of the roll-out. */
  readonly rollOut: string;
  readonly workerId: string;
  /** Rising per worker and roll-out. */
  readonly number: number;
  /** `waiting`: the worker tries again. `failed`: the version cannot start. */
  readonly step: 'preparing' | 'waiting' | 'ready' | 'failed';
  readonly reason?: string;
  readonly lines: readonly BuildLine[];
  /** How new calls move to the version, as its manifest says. Absent: all at once. */
  readonly steps?: RollOutSteps;
  /** Ended calls of the version on this worker since the first step. */
  readonly counts?: CallCounts;
}

/** `[scaling] roll_out_duration_seconds` and `[deployment] abort_on_error_rate`. */
export interface RollOutSteps {
  readonly durationMs: number;
  /** Percent of the version's calls. */
  readonly abortOnErrorRate?: number | undefined;
}

export interface CallCounts {
  readonly calls: number;
  readonly failed: number;
}

/** A line of a version's log. */
export interface BuildLine {
  /** ISO 8601. */
  readonly time: string;
  readonly text: string;
}

const ANSWERS = ['current', 'ended', 'stale'] as const;
/** The longest line, in characters, and the longest reason. */
const LONGEST_LINE = 2_000;

export const reportScript: Script<VersionReport, (typeof ANSWERS)[number]> = {
  name: 'version-report',
  encode: ({ app, version, rollOut, workerId, number, step, reason = '', lines, steps, counts }) => [
    ...[app, version, rollOut, workerId, number, step, reason.slice(0, LONGEST_LINE)],
    Math.round(steps?.durationMs ?? 0),
    String(steps?.abortOnErrorRate ?? ''),
    `${counts?.calls ?? 0} ${counts?.failed ?? 0}`,
    ...lines.map(({ time, text }) => JSON.stringify({ time, text: text.slice(0, LONGEST_LINE) })),
  ],
  decode: (reply) => codeIn(reply, ANSWERS),
};
