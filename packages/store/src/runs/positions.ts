// Contract 3, "Pace": acknowledges the position of a paced run's fastest reader to the run's worker, which grants credits by it.
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { type Feed, furthest } from './feed.ts';

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
    if (feed.over || (cursor - feed.told < ACK_ITEMS && feed.bytes < ACK_BYTES)) return;
    let feeds = this.#waiting.get(project);
    if (!feeds) {
      feeds = new Set();
      this.#waiting.set(project, feeds);
      setImmediate(() => this.#tell(project));
    }
    feeds.add(feed);
  }

  #tell(project: string): void {
    const feeds = this.#waiting.get(project) ?? [];
    this.#waiting.delete(project);
    const texts = new Map<string, string>();
    for (const feed of feeds) {
      const upTo = furthest(feed);
      if (upTo <= feed.told || feed.over) continue;
      feed.told = upTo;
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
