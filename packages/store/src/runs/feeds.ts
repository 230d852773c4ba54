// Contract 3 and 5: the readers of runs at this gateway. A feed is one run with readers here. Live messages go to the readers of their run, and
// the positions of readers go to the workers (contract 3, "Pace").
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import type { Task } from '../maintenance/rounds.ts';
import type { Shares } from '../maintenance/shares.ts';
import { ProjectChannels } from '../redis.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import { type FollowerMode, type LiveMessage, liveMessages, wantsItems } from './codec.ts';
import type { LogPage, PageRequest } from './follow.ts';
import { RunReader } from './reader.ts';

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

const NO_FEEDS: ReadonlyMap<RunId, Feed> = new Map();

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
const LARGE_BYTES = ACK_BYTES;

/** Gathers the positions of a tick: one message per worker. Attend repeats lost positions. */
class Positions {
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

/** The calls by which this gateway follows runs in the store. */
export interface FollowCalls {
  /** Reads a page of a run, and follows the run from there. Returns undefined if the run is gone. */
  page(project: string, request: PageRequest): Promise<LogPage | undefined>;
  /** Reports that the last reader of a run has left. */
  depart(project: string, runId: RunId): void;
  /** Reports the runs of a project that have readers. */
  attend(project: string): Promise<void>;
}

export interface FeedsOptions {
  readonly commands: Redis;
  readonly subscriber: Redis;
  readonly gatewayId: string;
  readonly logger: StoreLogger;
  readonly timings: StoreTimings;
  readonly shares: Shares;
}

export class Feeds implements Task {
  readonly everyMs: number;
  readonly #projects = new Map<string, Map<RunId, Feed>>();
  readonly #channels: ProjectChannels;
  /** By project: time of the last use of this gateway's channel (monotonic ms). */
  readonly #usedAt = new Map<string, number>();
  /** By project: ended runs whose last reader has left since the last round. */
  readonly #finished = new Map<string, RunId[]>();
  readonly #positions: Positions;
  readonly #calls: FollowCalls;

  readonly #options: FeedsOptions;

  /** @param callsFor makes the calls of these feeds */
  constructor(options: FeedsOptions, callsFor: (feeds: Feeds) => FollowCalls) {
    this.#options = options;

    this.#calls = callsFor(this);
    this.#positions = new Positions(options.commands);
    this.everyMs = options.timings.attendMs;
    this.#channels = new ProjectChannels({
      ...options,
      name: names.toGateway + options.gatewayId,
      onMessage: (project, message) => this.#heard(project, message),
      // Only messages after the confirmation come live, so an earlier attend would miss the messages in between.
      onRestored: (project) => void this.#calls.attend(project),
    });
  }

  /** Stops listening. */
  close(): void {
    this.#channels.close();
  }

  /** Resolves when this gateway's channel of the project is confirmed. Nothing is accepted or followed before. */
  listen(project: string): Promise<void> {
    this.#usedAt.set(project, performance.now());
    return this.#channels.subscribe(project);
  }

  /** Opens a reader of a run that this gateway is about to accept. The reader is live from the run's first item. */
  openNew(project: string, runId: RunId, mode: FollowerMode, wantsHead: boolean): RunReader {
    return this.#add(project, runId, mode, 0, true, wantsHead);
  }

  /** Records that the store has accepted the run. If its reader has gone, the departure may have overtaken the accept, so it is sent again. */
  confirm(project: string, runId: RunId): void {
    const feed = this.#projects.get(project)?.get(runId);
    if (feed) feed.known = true;
    else this.#calls.depart(project, runId);
  }

  /** The store refused the run. Its readers leave without a departure. */
  refused(project: string, runId: RunId): void {
    const feed = this.#projects.get(project)?.get(runId);
    if (feed) feed.over = true;
  }

  /** Opens a reader of an existing run after `cursor`. */
  open(project: string, runId: RunId, mode: FollowerMode, cursor: number, wantsHead: boolean): RunReader {
    return this.#add(project, runId, mode, cursor, false, wantsHead);
  }

  /** Returns the runs of a project that have readers. */
  of(project: string): ReadonlyMap<RunId, Feed> {
    return this.#projects.get(project) ?? NO_FEEDS;
  }

  /** Number of runs that have readers. */
  get size(): number {
    let count = 0;
    for (const feeds of this.#projects.values()) count += feeds.size;
    return count;
  }

  #add(
    project: string,
    runId: RunId,
    mode: FollowerMode,
    cursor: number,
    registered: boolean,
    wantsHead: boolean,
  ): RunReader {
    let feeds = this.#projects.get(project);
    if (!feeds) {
      feeds = new Map();
      this.#projects.set(project, feeds);
    }
    let feed = feeds.get(runId);
    if (!feed) {
      feed = {
        runId,
        readers: new Set(),
        known: !registered,
        token: '',
        reported: 0,
        bytes: 0,
        over: false,
        kept: false,
      };
      feeds.set(runId, feed);
    }
    const reader = new RunReader(project, runId, mode, cursor, registered, this, wantsHead);
    feed.readers.add(reader);
    return reader;
  }

  page({ project, runId, cursor, mode, line }: RunReader): Promise<LogPage | undefined> {
    return this.#calls.page(project, { runId, cursor, mode, line });
  }

  moved(reader: RunReader): void {
    const feed = this.#projects.get(reader.project)?.get(reader.runId);
    if (feed) this.#positions.moved(reader.project, feed, reader.reached);
  }

  left(reader: RunReader): void {
    const { project, runId } = reader;
    const feeds = this.#projects.get(project);
    const feed = feeds?.get(runId);
    if (!feeds || !feed) return;
    feed.readers.delete(reader);
    if (feed.readers.size > 0) return;
    feeds.delete(runId);
    if (feeds.size === 0) this.#projects.delete(project);
    if (!feed.over) this.#calls.depart(project, runId);
    else if (feed.kept) this.#finish(project, runId);
  }

  /**
   * Reports that the readers of an ended run have left, so that the run may be forgotten. If the store has room, nothing waits for this
   * report, and the reports of a round share a few calls. The first report without such room takes the waiting reports along.
   */
  #finish(project: string, runId: RunId): void {
    const { shares } = this.#options;
    const finished = this.#finished.get(project);
    if (finished) finished.push(runId);
    else this.#finished.set(project, [runId]);
    if (!shares.hasPlenty && shares.acceptLimit(project) !== undefined) this.#reportFinished(project);
  }

  #reportFinished(project: string): void {
    for (const runId of this.#finished.get(project) ?? []) this.#calls.depart(project, runId);
    this.#finished.delete(project);
  }

  #heard(project: string, published: Buffer): void {
    const feeds = this.#projects.get(project);
    if (!feeds) return;
    try {
      for (const message of liveMessages(published)) {
        const feed = feeds.get(message.runId);
        if (feed) this.#hand(feed, message);
      }
    } catch (error) {
      // The message comes from a newer version. The store has its content.
      this.#options.logger.error(
        { err: error, project },
        'a live message of an unknown format was dropped; its content is read from the store',
      );
      void this.#calls.attend(project);
    }
  }

  #hand(feed: Feed, message: LiveMessage): void {
    if (message.type === 'ended') end(feed, message.outcome.items);
    else if (message.type === 'ended-stored') end(feed);
    else feed.token = message.token;
    if (message.type === 'items') feed.bytes += message.batch.blob.length;
    else if (message.type === 'stored') feed.bytes += LARGE_BYTES;
    for (const reader of feed.readers) reader.live(message);
  }

  /** Reports the departures from ended runs, and attends every project that was used within a lease. */
  async run(): Promise<void> {
    for (const project of this.#finished.keys()) this.#reportFinished(project);
    const rounds = [...this.#usedAt.keys()].map((project) =>
      this.#isIdle(project) ? this.#leave(project) : this.#calls.attend(project),
    );
    await Promise.all(rounds);
  }

  /** Returns whether no run of the project was read here for a lease. Departures of earlier readers have been reported in that time. */
  #isIdle(project: string): boolean {
    const idleMs = performance.now() - (this.#usedAt.get(project) ?? 0);
    return !this.#projects.has(project) && idleMs > this.#options.timings.leaseMs;
  }

  /** Unsubscribes from a project. Otherwise a gateway would attend to every project that it has ever served. */
  async #leave(project: string): Promise<void> {
    this.#usedAt.delete(project);
    try {
      await this.#channels.leave(project);
    } catch (error) {
      this.#options.logger.warn(
        { err: error, project },
        'the channel of an idle project is still subscribed: unsubscribing failed',
      );
    }
  }
}
