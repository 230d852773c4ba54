// Contract 3 and Contract 5: feeds the readers of runs at this gateway. Live messages go to readers, gaps are filled from the store, and the
// store learns which runs have readers.
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { names, projectPrefix } from '../keys.ts';
import { Lane } from '../lane.ts';
import type { Task } from '../maintenance/rounds.ts';
import { ProjectChannels } from '../project-channels.ts';
import { runScript } from '../scripts.ts';
import { TickBatch } from '../tick-batch.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import { type AttendedRun, attendScript } from './attend.ts';
import { end, type Feed, furthest, isRead, LARGE_BYTES, modeOf, Positions } from './feed.ts';
import { followScript, type LogPage, type PageRequest } from './follow.ts';
import { type FollowerMode, type LiveMessage, liveMessages } from './live.ts';
import { RunReader } from './reader.ts';
import { unfollowScript } from './unfollow.ts';

/** The pages of one call hold at most this many bytes together (or one entry). */
const PAGE_BYTES = 1024 * 1024;
/** A call is repeated if another call of this gateway overtook it (resent after a lost reply). After this many repeats it fails. */
const STALE_TRIES = 3;
/** Runs in one attend call. A gateway may read tens of thousands of runs, and Redis serves no other client during a call. */
const ATTEND_RUNS = 2_000;

export interface FeedsOptions {
  readonly commands: Redis;
  readonly subscriber: Redis;
  readonly gatewayId: string;
  readonly deliveries: DeliveryQueue;
  readonly logger: StoreLogger;
  readonly timings: StoreTimings;
}

export class Feeds implements Task {
  readonly everyMs: number;
  readonly #projects = new Map<string, Map<RunId, Feed>>();
  readonly #channels: ProjectChannels;
  /** By project: time of the last use of this gateway's channel (monotonic ms). */
  readonly #usedAt = new Map<string, number>();
  /**
   * Rising number of follow, unfollow and attend calls: an overtaken call does nothing.
   * It starts at the clock, because a gateway may come back under its name.
   */
  #number = Date.now();
  readonly #pages: TickBatch<PageRequest, LogPage | undefined>;
  readonly #departures: TickBatch<RunId, void>;
  readonly #lane: Lane;
  readonly #positions: Positions;

  readonly #options: FeedsOptions;

  constructor(options: FeedsOptions) {
    this.#options = options;

    const { commandMs } = options.timings;
    this.#lane = new Lane(commandMs, commandMs);
    this.#pages = new TickBatch(
      (project, requests) => this.#follow(project, requests),
      () => 0,
    );
    this.#departures = new TickBatch(
      (project, ids) => this.#unfollow(project, ids),
      () => 0,
    );
    this.#positions = new Positions(options.commands);
    this.everyMs = options.timings.attendMs;
    this.#channels = new ProjectChannels({
      ...options,
      name: names.toGateway + options.gatewayId,
      onMessage: (project, message) => this.#heard(project, message),
      // Only messages after the confirmation come live, so an earlier attend would miss the messages in between.
      onRestored: (project) => void this.#attendSafely(project),
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
    else this.#depart(project, runId);
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

  page(reader: RunReader): Promise<LogPage | undefined> {
    return this.#pages.add(reader.project, {
      runId: reader.runId,
      cursor: reader.cursor,
      mode: reader.mode,
      line: reader.line,
    });
  }

  moved(reader: RunReader): void {
    const feed = this.#projects.get(reader.project)?.get(reader.runId);
    if (feed) this.#positions.moved(reader.project, feed, reader.reached);
  }

  left(reader: RunReader): void {
    const feeds = this.#projects.get(reader.project);
    const feed = feeds?.get(reader.runId);
    if (!feeds || !feed) return;
    feed.readers.delete(reader);
    if (feed.readers.size > 0) return;
    feeds.delete(reader.runId);
    if (feeds.size === 0) this.#projects.delete(reader.project);
    if (!feed.over || feed.kept) this.#depart(reader.project, reader.runId);
  }

  #depart(project: string, runId: RunId): void {
    this.#departures.add(project, runId).catch((error: unknown) => {
      // The next attend removes the gateway from the run. If this gateway dies, its lease expires.
      this.#options.logger.warn(
        { err: error, runId },
        'the departure of the last reader was not reported to the store; the next attend repeats it',
      );
    });
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
      void this.#attendSafely(project);
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

  async #follow(project: string, requests: PageRequest[]): Promise<(LogPage | undefined)[]> {
    const { timings, gatewayId, commands } = this.#options;
    await withinLimit(this.listen(project), timings.commandMs);
    // All readers of a run at the same place share one request.
    const places = new Map<string, number>();
    const shared: PageRequest[] = [];
    const asked = requests.map((request) => {
      const place = `${request.runId} ${request.cursor} ${request.mode} ${request.line}`;
      let at = places.get(place);
      if (at === undefined) {
        at = shared.push(request) - 1;
        places.set(place, at);
      }
      return at;
    });
    let pages: 'stale' | (LogPage | undefined)[] = 'stale';
    for (let tries = 0; pages === 'stale' && tries < STALE_TRIES; tries++) {
      const { leaseMs } = timings;
      const ask = (): Promise<typeof pages> => {
        const args = { gatewayId, number: ++this.#number, leaseMs, maxBytes: PAGE_BYTES, pages: shared };
        return runScript(commands, followScript, project, args);
      };
      pages = await this.#lane.call(PAGE_BYTES, ask);
    }
    if (pages === 'stale')
      throw new ServiceError('unavailable', 'The run store answered calls of this gateway out of order.');
    const found = pages;
    for (const [at, { runId }] of shared.entries()) {
      const page = found[at];
      const feed = this.#projects.get(project)?.get(runId);
      if (feed && page) {
        feed.known = true;
        feed.token = page.token;
        feed.bytes += page.batches.reduce((sum, batch) => sum + batch.blob.length, 0);
        if (page.outcome && !feed.over) {
          end(feed, page.last);
          // The message of the end may have been lost, and an ended run is not attended. The feed's other readers learn of the end here.
          for (const reader of feed.readers) reader.check();
        }
      }
    }
    return asked.map((at) => found[at]);
  }

  async #unfollow(project: string, ids: RunId[]): Promise<undefined[]> {
    const { timings, gatewayId, commands, deliveries } = this.#options;
    // The accept may still wait for the channel, so the departure waits too.
    await this.listen(project);
    // A reader that came in between keeps the run.
    const gone = ids.filter((id) => !this.#projects.get(project)?.has(id));
    if (gone.length > 0) {
      const args = { gatewayId, number: ++this.#number, handoverMs: timings.handoverMs, runIds: gone };
      deliveries.handOver(
        project,
        await withinLimit(runScript(commands, unfollowScript, project, args), timings.commandMs),
      );
    }
    return ids.map(() => undefined);
  }

  /** Attends every project that was used within a lease. */
  async run(): Promise<void> {
    const rounds = [...this.#usedAt.keys()].map((project) =>
      this.#isIdle(project) ? this.#leave(project) : this.#attendSafely(project),
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

  async #attendSafely(project: string): Promise<void> {
    try {
      for (let tries = 0; tries < STALE_TRIES; tries++) if (await this.#attend(project)) return;
    } catch (error) {
      this.#options.logger.warn({ err: error, project }, 'the attend call failed; the next round repeats it');
    }
  }

  /** @returns false if the call did nothing because another call overtook it */
  async #attend(project: string): Promise<boolean> {
    const { timings, gatewayId, commands } = this.#options;
    const feeds = [...(this.#projects.get(project)?.values() ?? [])].filter((feed) => !feed.over || isRead(feed));
    let from = 0;
    do {
      const part = feeds.slice(from, from + ATTEND_RUNS);
      const asked = part.map((feed) => feed.known && !feed.over);
      const runs = part.map((feed) => ({ runId: feed.runId, position: furthest(feed), mode: modeOf(feed) }));
      const args = { gatewayId, number: ++this.#number, leaseMs: timings.leaseMs, runs };
      const answer = await withinLimit(runScript(commands, attendScript, project, args), timings.commandMs);
      if (answer === 'stale') return false;
      for (const [at, run] of answer.runs.entries()) this.#attended(part[at] as Feed, run, asked[at] as boolean);
      from += ATTEND_RUNS;
      if (from >= feeds.length && answer.following > feeds.filter((feed) => !feed.over).length)
        await this.#dropStrays(project);
    } while (from < feeds.length);
    return true;
  }

  /** @param asked whether the run was known at the time of the call */
  #attended(feed: Feed, run: AttendedRun | undefined, asked: boolean): void {
    if (run === undefined) {
      if (!asked) return;
      feed.over = true;
      for (const reader of feed.readers) {
        reader.fail(new ServiceError('unavailable', 'The run store has lost the run.', { runId: feed.runId }));
      }
      return;
    }
    for (const reader of feed.readers) if (run.ended || reader.misses(run.lastItem, run.lastLine)) reader.check();
  }

  /** Reports departures again for runs that this gateway follows without a reader: an earlier report was lost. */
  async #dropStrays(project: string): Promise<void> {
    const { commands, gatewayId, timings } = this.#options;
    const key = projectPrefix(project) + names.following + gatewayId;
    const following = await withinLimit(commands.smembers(key), timings.commandMs);
    for (const runId of following) if (!this.#projects.get(project)?.has(runId)) this.#depart(project, runId);
  }
}
