// Contract 1 and 5: this gateway as a follower of runs. The store learns which runs have readers here, and returns the entries that the readers
// lack.
import { type RunId, ServiceError } from '@inference-proxy/contracts';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { names, projectPrefix } from '../keys.ts';
import { Lane } from '../lane.ts';
import { TickBatch, withinLimit } from '../redis.ts';
import { runScript } from '../scripts.ts';
import { type AttendedRun, attendScript } from './attend.ts';
import { end, type Feed, type Feeds, type FeedsOptions, type FollowCalls, furthest, isRead, modeOf } from './feeds.ts';
import { followScript, type LogPage, type PageRequest } from './follow.ts';
import { unfollowScript } from './unfollow.ts';

/** The pages of one call hold at most this many bytes together (or one entry). */
const PAGE_BYTES = 1024 * 1024;
/** A call is repeated if another call of this gateway overtook it (resent after a lost reply). After this many repeats it fails. */
const STALE_TRIES = 3;
/** Runs in one attend call. A gateway may read tens of thousands of runs, and Redis serves no other client during a call. */
const ATTEND_RUNS = 2_000;

export interface FollowerOptions extends FeedsOptions {
  readonly deliveries: DeliveryQueue;
}

export class Follower implements FollowCalls {
  /**
   * Rising number of follow, unfollow and attend calls: an overtaken call does nothing.
   * It starts at the clock, because a gateway may come back under its name.
   */
  #number = Date.now();
  readonly #pages: TickBatch<PageRequest, LogPage | undefined>;
  readonly #departures: TickBatch<RunId, void>;
  readonly #lane: Lane;

  readonly #options: FollowerOptions;
  readonly #feeds: Feeds;

  constructor(options: FollowerOptions, feeds: Feeds) {
    this.#options = options;
    this.#feeds = feeds;

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
  }

  page(project: string, request: PageRequest): Promise<LogPage | undefined> {
    return this.#pages.add(project, request);
  }

  depart(project: string, runId: RunId): void {
    this.#departures.add(project, runId).catch((error: unknown) => {
      // The next attend removes the gateway from the run. If this gateway dies, its lease expires.
      this.#options.logger.warn(
        { err: error, runId },
        'the departure of the last reader was not reported to the store; the next attend repeats it',
      );
    });
  }

  async attend(project: string): Promise<void> {
    try {
      for (let tries = 0; tries < STALE_TRIES; tries++) if (await this.#attend(project)) return;
    } catch (error) {
      this.#options.logger.warn({ err: error, project }, 'the attend call failed; the next round repeats it');
    }
  }

  async #follow(project: string, requests: PageRequest[]): Promise<(LogPage | undefined)[]> {
    const { timings, gatewayId, commands } = this.#options;
    await withinLimit(this.#feeds.listen(project), timings.commandMs);
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
      const feed = this.#feeds.of(project).get(runId);
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
    await this.#feeds.listen(project);
    // A reader that came in between keeps the run.
    const gone = ids.filter((id) => !this.#feeds.of(project).has(id));
    if (gone.length > 0) {
      const args = { gatewayId, number: ++this.#number, handoverMs: timings.handoverMs, runIds: gone };
      const due = await withinLimit(runScript(commands, unfollowScript, project, args), timings.commandMs);
      if (due.length > 0) deliveries.handOver(project, due);
    }
    return ids.map(() => undefined);
  }

  /** @returns false if the call did nothing because another call overtook it */
  async #attend(project: string): Promise<boolean> {
    const { timings, gatewayId, commands } = this.#options;
    const feeds = [...this.#feeds.of(project).values()].filter((feed) => !feed.over || isRead(feed));
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
    for (const runId of following) if (!this.#feeds.of(project).has(runId)) this.depart(project, runId);
  }
}
