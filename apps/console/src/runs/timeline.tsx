// The life of a run as bars: queue, execution until the first item, execution, and the attempts of its webhook.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Delivery, Run } from '../api/api.ts';
import { clock, duration } from '../components/time.tsx';

interface Bar {
  readonly name: string;
  readonly kind: string;
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
  readonly note?: string;
}

const MOVES_MS = 250;

/** Returns the bars of a run. @param now the end of what has not ended, in milliseconds since 1970 */
export function barsOf(run: Run, deliveries: readonly Delivery[], now: number): Bar[] {
  const at = (time: string | undefined): number | undefined => (time === undefined ? undefined : Date.parse(time));
  const end = at(run.ended_at) ?? now;
  const queued = at(run.queued_at) ?? now;
  const started = at(run.started_at);
  const first = at(run.first_item_at);
  const bars: Bar[] = [{ name: 'queued', kind: 'queued', from: queued, to: started ?? end }];
  if (started !== undefined && first !== undefined)
    bars.push({ name: 'until first item', kind: 'started', from: started, to: first });
  if (started !== undefined)
    bars.push({ name: first === undefined ? 'running' : 'items', kind: 'items', from: first ?? started, to: end });
  const attempts = deliveries.flatMap(({ log = [] }) => log);
  for (const { attempt, at: begun, duration_ms: ms, status, error } of attempts) {
    const from = Date.parse(begun);
    const good = status !== undefined && status < 300;
    bars.push({
      name: `webhook ${attempt}`,
      kind: good ? 'delivered' : 'refused',
      from,
      to: from + ms,
      note: String(status ?? error ?? ''),
    });
  }
  return bars;
}

export function Timeline({ run, deliveries }: { readonly run: Run; readonly deliveries: readonly Delivery[] }) {
  const now = useSignal(Date.now());
  const ended = run.ended_at !== undefined;
  useEffect(() => {
    if (ended) return;
    const timer = setInterval(() => {
      now.value = Date.now();
    }, MOVES_MS);
    return () => clearInterval(timer);
  }, [ended, now]);
  const bars = barsOf(run, deliveries, now.value);
  const from = Math.min(...bars.map((bar) => bar.from));
  const span = Math.max(1, Math.max(...bars.map((bar) => bar.to)) - from);
  return (
    <section class="pane" aria-labelledby="timeline-title">
      <h2 id="timeline-title">Timeline</h2>
      <ol class="timeline">
        {bars.map((bar) => (
          <li key={bar.name} data-kind={bar.kind} title={`${clock(new Date(bar.from).toISOString())}`}>
            <span class="what">{bar.name}</span>
            <span class="track" aria-hidden="true">
              <span
                class="bar"
                style={{
                  left: `${(100 * (bar.from - from)) / span}%`,
                  width: `${Math.max(0.4, (100 * (bar.to - bar.from)) / span)}%`,
                }}
              />
            </span>
            <span class="took">
              {duration(Math.max(0, bar.to - bar.from))} {bar.note}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
