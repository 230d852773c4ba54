// Contract 5, "Statistics": calls, errors and latencies of a project's apps in a window of time.
import { type AppStats, type GatewayStore, Latencies } from '@inference-proxy/store';
import { z } from 'zod';
import { checkProject } from '../http/not-found.ts';
import { readQuery } from '../http/query.ts';
import type { Query } from '../http/request-head.ts';
import { filterWord, isoTime, paging, wholeSeconds } from '../http/values.ts';

const MINUTE_S = 60;
/** The store keeps the counters for a day. */
const DAY_S = 86_400;

/** The step of each window up to a length, s: at most 120 steps. */
const STEPS: readonly (readonly [windowS: number, stepS: number])[] = [
  [7_200, 60],
  [21_600, 300],
  [DAY_S, 900],
];

const isWindow = (text: string): boolean => {
  const seconds = wholeSeconds(text) ?? 0;
  return seconds >= MINUTE_S && seconds <= DAY_S;
};

const statsQuery = z.object({
  window: z
    .string()
    .prefault('3600')
    .refine(isWindow, `must be a whole number of seconds from ${MINUTE_S} to ${DAY_S}`)
    .transform(Number),
  app: filterWord,
  ...paging,
});

export class CallStats {
  readonly #store: Pick<GatewayStore, 'stats'>;

  constructor(store: Pick<GatewayStore, 'stats'>) {
    this.#store = store;
  }

  /** Returns the answer of `GET /v4/{project}/stats`. @throws ServiceError `not_found`, `invalid_request`, `unavailable` */
  async of(project: string, query: Query): Promise<object> {
    const { window: windowS, app, limit, cursor } = readQuery(statsQuery, query, 'ignored');
    checkProject(project);
    const [, stepS] = STEPS.find(([most]) => windowS <= most) ?? [DAY_S, MINUTE_S];
    const stats = await this.#store.stats(project, {
      windowMs: windowS * 1000,
      stepMs: stepS * 1000,
      limit,
      ...(app !== undefined && { app }),
      ...(cursor !== undefined && { cursor }),
    });
    const steps = (stats.until - stats.since) / (stepS * 1000);
    return {
      since: isoTime(stats.since),
      until: isoTime(stats.until),
      step_s: stepS,
      apps: stats.apps.map((one) => appView(one, steps)),
      ...(stats.cursor !== undefined && { cursor: stats.cursor }),
    };
  }
}

function appView({ app, steps }: AppStats, count: number): object {
  const all = new Latencies();
  for (const step of steps.values()) all.addAll(step);
  const series = (value: (step: Latencies) => number | null): (number | null)[] => {
    const none = new Latencies();
    return Array.from({ length: count }, (_, at) => value(steps.get(at) ?? none));
  };
  return {
    app,
    ...figures(all),
    series: {
      calls: series(({ calls }) => calls),
      errors: series(({ errors }) => errors),
      p50_ms: series((step) => figures(step).p50_ms),
      p99_ms: series((step) => figures(step).p99_ms),
    },
  };
}

interface Figures {
  readonly calls: number;
  readonly errors: number;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
}

const figures = (latencies: Latencies): Figures => ({
  calls: latencies.calls,
  errors: latencies.errors,
  p50_ms: latencies.quantile(0.5) ?? null,
  p99_ms: latencies.quantile(0.99) ?? null,
});
