// Contract 5: computes the number of a run's last event, with which `Last-Event-ID` is compared.
import type { RunState } from '@inference-proxy/contracts';
import type { StreamForm } from './stream-form.ts';

/** The fields that decide the number. An `Outcome` has them too. */
export interface EndedRun {
  readonly state: RunState;
  readonly items: number;
  readonly streamed: boolean;
}

/**
 * Returns the number of the last event. Items are numbered from 1, and so is the one event of a plain value.
 * A failure has the number after the last item, so that a reader without it gets it, and a reader with it does not.
 * In the rich stream, a failure repeats the number of the last item, like every event
 * that is not an item (contract 3).
 */
export function lastEventOf({ state, items, streamed }: EndedRun, form: StreamForm): number {
  if (state !== 'succeeded') return form === 'full' ? items : items + 1;
  return streamed ? items : 1;
}

/**
 * Returns whether the run has ended and has no event after the reader's last event.
 *
 * @param after absent: the reader starts with the run, and in the rich form also wants the events that are not items
 */
export function nothingFollows(run: EndedRun, after: number | undefined, form: StreamForm): boolean {
  if (run.state === 'queued' || run.state === 'running') return false;
  if (after === undefined && form === 'full') return false;
  return (after ?? 0) >= lastEventOf(run, form);
}
