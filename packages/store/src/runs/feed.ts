// Contract 3: a feed is one run with readers at this gateway.
import type { RunId } from '@inference-proxy/contracts';
import { type LiveMode, wantsItems } from './live.ts';
import type { RunReader } from './reader.ts';

export interface Feed {
  readonly runId: RunId;
  readonly readers: Set<RunReader>;
  /** False until the store has answered. A run that is not stored yet is not gone. */
  known: boolean;
  /** The attempt whose items came last. Its worker gets the positions. */
  token: string;
  /** Position that was last sent to the worker, and bytes that came since. */
  told: number;
  bytes: number;
  /** The end of the run was seen. Nothing further comes. */
  over: boolean;
  /** The store keeps the ended run for readers here, and must be notified when they have gone. */
  kept: boolean;
}

/** Returns the number of the last item that the feed's fastest reader has. */
export const furthest = (feed: Feed): number => {
  let upTo = 0;
  for (const { mode, reached } of feed.readers) if (wantsItems(mode) && reached > upTo) upTo = reached;
  return upTo;
};

/** Returns the mode that covers the modes of all readers. */
export const modeOf = (feed: Feed): LiveMode => {
  const modes = new Set<LiveMode>();
  for (const { mode } of feed.readers) modes.add(mode);
  if (modes.has('f') || (modes.has('i') && modes.has('l'))) return 'f';
  return modes.has('i') ? 'i' : modes.has('l') ? 'l' : 'o';
};

/** Returns whether a reader here still reads the ended run. Such a run is not forgotten. */
export const isRead = (feed: Feed): boolean => {
  for (const reader of feed.readers) if (!reader.finished) return true;
  return false;
};

/** Marks the feed as over. @param items number of the run's items; absent if unknown */
export const end = (feed: Feed, items?: number): void => {
  feed.over = true;
  const mode = modeOf(feed);
  // The same rule as in parts/ending.lua and follow.lua.
  feed.kept = items !== 0 || mode === 'l' || mode === 'f';
};
