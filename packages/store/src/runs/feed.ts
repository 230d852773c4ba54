// One run that this gateway reads, however many readers it has here.
import type { RunId } from '@inference-proxy/contracts';
import type { LiveMode, RunReader } from './reader.ts';

export interface Feed {
  readonly runId: RunId;
  readonly readers: Set<RunReader>;
  /** False until the store has answered: a run that is not there yet is not gone. */
  known: boolean;
  /** The attempt whose items came last: its worker gets the positions. */
  token: string;
  /** Position last told, and bytes that came since. */
  told: number;
  bytes: number;
  /** Its end was seen: nothing more comes. */
  over: boolean;
}

/** Number of the last item that the feed's fastest reader has. */
export const furthest = (feed: Feed): number => {
  let upTo = 0;
  for (const reader of feed.readers) if (reader.mode === 'i' && reader.cursor > upTo) upTo = reader.cursor;
  return upTo;
};

/** What the readers want to be told, together. */
export const modeOf = (feed: Feed): LiveMode => {
  for (const reader of feed.readers) if (reader.mode === 'i') return 'i';
  return 'o';
};
