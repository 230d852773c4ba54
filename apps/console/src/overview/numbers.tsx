// The numbers of an app: calls, errors and latency, as figures and as charts.
import type { AppStats, Stats } from '../api/stats.ts';
import { Chart } from '../components/chart.tsx';
import { duration } from '../components/time.tsx';

const MINUTE_S = 60;

/** A number with at most one decimal. */
const short = (value: number): string =>
  value >= 1_000 ? `${(value / 1_000).toFixed(1)}k` : String(Math.round(value * 10) / 10);

/** Returns the mean of the last complete steps, in a minute. The newest step is not complete. */
function perMinute(values: readonly number[], stepS: number): number {
  const complete = values.slice(-6, -1);
  if (complete.length === 0) return 0;
  return ((complete.reduce((sum, each) => sum + each, 0) / complete.length) * MINUTE_S) / stepS;
}

const latency = (ms: number | null): string => (ms === null ? '–' : duration(ms));

function Figure({ name, value, tone }: { readonly name: string; readonly value: string; readonly tone?: string }) {
  return (
    <div class="figure" data-tone={tone}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** Returns the statistics of an app without a call in the window. */
const silent = (app: string): AppStats => ({
  app,
  calls: 0,
  errors: 0,
  p50_ms: null,
  p99_ms: null,
  series: { calls: [], errors: [], p50_ms: [], p99_ms: [] },
});

export function Numbers({
  app,
  stats,
  height = 90,
}: {
  readonly app: string;
  readonly stats: Stats;
  readonly height?: number;
}) {
  const own = stats.apps.find((each) => each.app === app) ?? silent(app);
  const { calls, errors, p50_ms: p50, p99_ms: p99 } = own.series;
  const since = Date.parse(stats.since) / 1_000;
  const times = calls.map((_, step) => since + step * stats.step_s);
  const callsNow = perMinute(calls, stats.step_s);
  const errorsNow = perMinute(errors, stats.step_s);
  const scale = MINUTE_S / stats.step_s;
  const minutes = Math.round((calls.length * stats.step_s) / MINUTE_S);
  return (
    <>
      <dl class="figures">
        <Figure name="calls/min" value={short(callsNow)} />
        <Figure name="errors/min" value={short(errorsNow)} {...(errorsNow > 0 && { tone: 'bad' })} />
        <Figure name="p50" value={latency(own.p50_ms)} />
        <Figure name="p99" value={latency(own.p99_ms)} />
      </dl>
      {own.calls > 0 ? (
        <div class="charts">
          <Chart
            times={times}
            height={height}
            format={short}
            summary={`${app}: ${own.calls} calls and ${own.errors} errors in ${minutes} minutes.`}
            lines={[
              { label: 'calls/min', colour: 'chart-calls', values: calls.map((n) => n * scale), filled: true },
              { label: 'errors/min', colour: 'chart-errors', values: errors.map((n) => n * scale), filled: true },
            ]}
          />
          <Chart
            times={times}
            height={height}
            format={duration}
            summary={`${app}: half of the calls took up to ${latency(own.p50_ms)}, 99 % up to ${latency(own.p99_ms)}.`}
            lines={[
              { label: 'p50', colour: 'chart-p50', values: p50 },
              { label: 'p99', colour: 'chart-p99', values: p99 },
            ]}
          />
        </div>
      ) : (
        <p class="quiet">No call ended in this time.</p>
      )}
    </>
  );
}
