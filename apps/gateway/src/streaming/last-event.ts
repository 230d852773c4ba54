// Contract 5: the number of a run's last event, which is what `Last-Event-ID` is measured by.
import type { RunState } from '@inference-proxy/contracts';
import type { StreamForm } from './stream-form.ts';

/** What it follows from; an `Outcome` has it too. */
export interface EndedRun {
  readonly state: RunState;
  readonly items: number;
  readonly streamed: boolean;
}

/**
 * Items are numbered from 1, and so is the one event of a plain value. A failure has the number after the last item: a reader that was cut before
 * it must still learn of it, and one that has it must not get it again. In the full form it repeats the last item's number, as every event
 * that is no item does (contract 3).
 */
export function lastEventOf({ state, items, streamed }: EndedRun, form: StreamForm): number {
  if (state !== 'succeeded') return form === 'full' ? items : items + 1;
  return streamed ? items : 1;
}

/**
 * Whether the run has ended and no event follows the one that the reader has.
 *
 * @param after absent: the reader starts with the run, and in the full form wants the events that are no items too
 */
export function nothingFollows(run: EndedRun, after: number | undefined, form: StreamForm): boolean {
  if (run.state === 'queued' || run.state === 'running') return false;
  if (after === undefined && form === 'full') return false;
  return (after ?? 0) >= lastEventOf(run, form);
}
