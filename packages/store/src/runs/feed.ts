// Contract 3: a feed is one run with readers at this gateway. "Pace": reports the position of a paced run's fastest reader to its worker.
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { type FollowerMode, wantsItems } from './live.ts';
import type { RunReader } from './reader.ts';

export interface Feed {
  readonly runId: RunId;
  readonly readers: Set<RunReader>;
  /** False until the store has answered. A run that is not stored yet is not gone. */
  known: boolean;
  /** The attempt whose items came last. Its worker gets the positions. */
  token: string;
  /** Position that was last sent to the worker, and bytes that came since. */
  reported: number;
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
export const modeOf = (feed: Feed): FollowerMode => {
  const modes = new Set<FollowerMode>();
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

/** A position is sent after this many items or bytes: at most half of the smallest window of credits. */
const ACK_ITEMS = 128;
const ACK_BYTES = 256 * 1024;

/** Bytes that a too large entry counts for. Such an entry is not published, and its position is sent at once. */
export const LARGE_BYTES = ACK_BYTES;

/** Gathers the positions of a tick: one message per worker. Attend repeats lost positions. */
export class Positions {
  readonly #waiting = new Map<string, Set<Feed>>();

  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Records that a reader of this feed is at item `cursor`. */
  moved(project: string, feed: Feed, cursor: number): void {
    if (feed.over || (cursor - feed.reported < ACK_ITEMS && feed.bytes < ACK_BYTES)) return;
    let feeds = this.#waiting.get(project);
    if (!feeds) {
      feeds = new Set();
      this.#waiting.set(project, feeds);
      setImmediate(() => this.#report(project));
    }
    feeds.add(feed);
  }

  #report(project: string): void {
    const feeds = this.#waiting.get(project) ?? [];
    this.#waiting.delete(project);
    const texts = new Map<string, string>();
    for (const feed of feeds) {
      const upTo = furthest(feed);
      if (upTo <= feed.reported || feed.over) continue;
      feed.reported = upTo;
      feed.bytes = 0;
      const worker = feed.token.slice(0, feed.token.indexOf(':'));
      texts.set(worker, `${texts.get(worker) ?? ''}taken ${feed.runId} ${feed.token} ${upTo}\n`);
    }
    for (const [worker, text] of texts) {
      const channel = projectPrefix(project) + names.toWorker + worker;
      this.#redis.spublish(channel, text).catch(() => undefined);
    }
  }
}
