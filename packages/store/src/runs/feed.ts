// One run that this gateway reads, however many readers it has here.
import type { RunId } from '@inference-proxy/contracts';
import { type LiveMode, type RunReader, wantsItems } from './reader.ts';

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
  /** What it left is kept for its readers here: the store is told when they have gone. */
  kept: boolean;
}

/** Number of the last item that the feed's fastest reader has. */
export const furthest = (feed: Feed): number => {
  let upTo = 0;
  for (const { mode, reached } of feed.readers) if (wantsItems(mode) && reached > upTo) upTo = reached;
  return upTo;
};

/** What the readers want to be told, together. */
export const modeOf = (feed: Feed): LiveMode => {
  const modes = new Set<LiveMode>();
  for (const { mode } of feed.readers) modes.add(mode);
  if (modes.has('f') || (modes.has('i') && modes.has('l'))) return 'f';
  return modes.has('i') ? 'i' : modes.has('l') ? 'l' : 'o';
};

/** Whether somebody here still reads what an ended run left: it is not forgotten meanwhile. */
export const isRead = (feed: Feed): boolean => {
  for (const reader of feed.readers) if (!reader.finished) return true;
  return false;
};

/** Its end was seen. @param items how many it has had; absent: not known */
export const end = (feed: Feed, items?: number): void => {
  feed.over = true;
  const mode = modeOf(feed);
  // As lua/shared/finish and lua/follow have it.
  feed.kept = items !== 0 || mode === 'l' || mode === 'f';
};
