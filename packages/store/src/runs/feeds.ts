// The runs that this gateway reads: one feed per run however many readers, live messages handed to them, positions told to workers and store.
import { type Outcome, type RunId, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import type { DeliveryQueue } from '../deliveries/queue.ts';
import { names, projectPrefix } from '../keys.ts';
import { runScript, type ScriptArgument } from '../scripts.ts';
import { TickBatch } from '../tick-batch.ts';
import { withinLimit } from '../time-limit.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';
import { batchOfEntry } from './batches.ts';
import { type LiveMessage, liveMessages } from './live.ts';
import { outcomeOf } from './outcome-codec.ts';
import { type LiveMode, type LogPage, RunReader } from './reader.ts';

/** The pages of one call hold at most this much together (or one entry). */
const PAGE_BYTES = 1024 * 1024;
/** A call that another of this gateway overtook (resent after a lost reply) is made anew; that often in a row is not believed. */
const STALE_TRIES = 3;
/** A position is told to the worker when it moved by this many items or bytes: half of the smallest window of credits. */
const ACK_ITEMS = 128;
const ACK_BYTES = 256 * 1024;

interface Feed {
  readonly runId: RunId;
  readonly readers: Set<RunReader>;
  /** False until the store has answered: a run that is not there yet is not gone. */
  known: boolean;
  /** The attempt whose items came last: its worker gets the positions. */
  token: string;
  /** Position last told, and bytes that came since. */
  told: number;
  bytes: number;
  over: boolean;
}

interface PageRequest {
  readonly runId: RunId;
  readonly cursor: number;
  readonly mode: LiveMode;
}

export interface FeedsOptions {
  readonly commands: Redis;
  readonly subscriber: Redis;
  readonly gatewayId: string;
  readonly deliveries: DeliveryQueue;
  readonly logger: StoreLogger;
  readonly timings: StoreTimings;
}

export class Feeds {
  private readonly projects = new Map<string, Map<RunId, Feed>>();
  private readonly listening = new Map<string, Promise<void>>();
  /** Rising number of follow, unfollow and attend calls: one that was overtaken does nothing. From the clock, for a gateway may come back under its name. */
  private number = Date.now();
  private readonly pages: TickBatch<PageRequest, LogPage | undefined>;
  private readonly departures: TickBatch<RunId, void>;
  private readonly positions = new Map<string, Set<Feed>>();
  private attending: NodeJS.Timeout | undefined;

  constructor(private readonly options: FeedsOptions) {
    this.pages = new TickBatch(
      (project, requests) => this.follow(project, requests),
      () => 0,
    );
    this.departures = new TickBatch(
      (project, ids) => this.unfollow(project, ids),
      () => 0,
    );
    options.subscriber.on('smessageBuffer', this.onMessage);
    // After every (re)connect the lists are told anew: what was published meanwhile is read from the log.
    options.subscriber.on('ready', this.onReady);
  }

  start(): void {
    this.attending ??= setInterval(this.attendAll, this.options.timings.attendMs);
  }

  stop(): void {
    clearInterval(this.attending);
    this.attending = undefined;
    this.options.subscriber.off('smessageBuffer', this.onMessage);
    this.options.subscriber.off('ready', this.onReady);
  }

  /** Resolves when this gateway's channel of the project is confirmed: before that nothing is accepted or followed. */
  listen(project: string): Promise<void> {
    let confirmed = this.listening.get(project);
    if (!confirmed) {
      confirmed = this.options.subscriber.ssubscribe(this.channel(project)).then(
        () => undefined,
        (error: unknown) => {
          this.listening.delete(project);
          throw error;
        },
      );
      this.listening.set(project, confirmed);
    }
    return confirmed;
  }

  /** A reader of a run that this gateway is about to accept, live from its first item. */
  openNew(project: string, runId: RunId, mode: LiveMode): RunReader {
    return this.add(project, runId, mode, 0, true);
  }

  /** The store has accepted it. Where its reader has gone meanwhile, its departure may have overtaken the accept. */
  confirm(project: string, runId: RunId): void {
    const feed = this.projects.get(project)?.get(runId);
    if (feed) feed.known = true;
    else this.depart(project, runId);
  }

  /** A reader of a run that is there, after `cursor`. */
  open(project: string, runId: RunId, mode: LiveMode, cursor: number): RunReader {
    return this.add(project, runId, mode, cursor, false);
  }

  /** How many runs are being read. */
  get size(): number {
    let count = 0;
    for (const feeds of this.projects.values()) count += feeds.size;
    return count;
  }

  private add(project: string, runId: RunId, mode: LiveMode, cursor: number, registered: boolean): RunReader {
    let feeds = this.projects.get(project);
    if (!feeds) {
      feeds = new Map();
      this.projects.set(project, feeds);
    }
    let feed = feeds.get(runId);
    if (!feed) {
      feed = { runId, readers: new Set(), known: !registered, token: '', told: cursor, bytes: 0, over: false };
      feeds.set(runId, feed);
    }
    const reader = new RunReader(project, runId, mode, cursor, registered, this);
    feed.readers.add(reader);
    return reader;
  }

  page(reader: RunReader): Promise<LogPage | undefined> {
    return this.pages.add(reader.project, { runId: reader.runId, cursor: reader.cursor, mode: reader.mode });
  }

  moved(reader: RunReader): void {
    const feed = this.projects.get(reader.project)?.get(reader.runId);
    if (!feed || feed.over) return;
    if (reader.cursor - feed.told < ACK_ITEMS && feed.bytes < ACK_BYTES) return;
    let waiting = this.positions.get(reader.project);
    if (!waiting) {
      waiting = new Set();
      this.positions.set(reader.project, waiting);
      const { project } = reader;
      setImmediate(() => this.tellPositions(project));
    }
    waiting.add(feed);
  }

  left(reader: RunReader): void {
    const feeds = this.projects.get(reader.project);
    const feed = feeds?.get(reader.runId);
    if (!feeds || !feed) return;
    feed.readers.delete(reader);
    if (feed.readers.size > 0) return;
    feeds.delete(reader.runId);
    if (feeds.size === 0) this.projects.delete(reader.project);
    if (!feed.over) this.depart(reader.project, reader.runId);
  }

  private depart(project: string, runId: RunId): void {
    this.departures.add(project, runId).catch((error: unknown) => {
      // The next attend drops it, and if this gateway dies its lease runs out.
      this.options.logger.warn({ err: error, runId }, 'departure was not told to the store');
    });
  }

  private channel(project: string): string {
    return projectPrefix(project) + names.toGateway + this.options.gatewayId;
  }

  private readonly onMessage = (channel: Buffer, published: Buffer): void => {
    const name = channel.toString('latin1');
    const open = name.indexOf('{') + 1;
    const project = name.slice(open, name.indexOf('}', open));
    if (name !== this.channel(project)) return;
    const feeds = this.projects.get(project);
    if (!feeds) return;
    try {
      for (const message of liveMessages(published)) {
        const feed = feeds.get(message.runId);
        if (feed) this.hand(feed, message);
      }
    } catch (error) {
      // From a version to come: what it said is in the log.
      this.options.logger.error({ err: error, project }, 'a live message was not understood; the log is read instead');
      void this.attendSafely(project);
    }
  };

  private hand(feed: Feed, message: LiveMessage): void {
    if (message.type === 'items' || message.type === 'stored') {
      feed.token = message.token;
      feed.bytes += message.type === 'items' ? message.batch.blob.length : ACK_BYTES;
    } else {
      feed.over = true;
    }
    for (const reader of feed.readers) reader.live(message);
  }

  /** The fastest reader's position of each feed, one message per worker. Lost ones are made good by attend. */
  private tellPositions(project: string): void {
    const waiting = this.positions.get(project);
    this.positions.delete(project);
    if (!waiting) return;
    const texts = new Map<string, string>();
    for (const feed of waiting) {
      const upTo = furthest(feed);
      if (upTo <= feed.told || feed.over) continue;
      feed.told = upTo;
      feed.bytes = 0;
      const worker = feed.token.slice(0, feed.token.indexOf(':'));
      texts.set(worker, `${texts.get(worker) ?? ''}taken ${feed.runId} ${feed.token} ${upTo}\n`);
    }
    for (const [worker, text] of texts) {
      const channel = projectPrefix(project) + names.toWorker + worker;
      this.options.commands.spublish(channel, text).catch(() => undefined);
    }
  }

  private async follow(project: string, requests: PageRequest[]): Promise<(LogPage | undefined)[]> {
    const { timings, gatewayId, commands } = this.options;
    await withinLimit(this.listen(project), timings.commandMs);
    const runs = requests.flatMap(({ runId, cursor, mode }) => [runId, cursor, mode]);
    let answers: PageReply[] | undefined;
    for (let tries = 0; !answers && tries < STALE_TRIES; tries++) {
      const args: ScriptArgument[] = [gatewayId, ++this.number, timings.leaseMs, PAGE_BYTES, ...runs];
      const reply = await withinLimit(runScript(commands, 'follow', project, args), timings.commandMs);
      const [stale, pages] = reply as [number, PageReply[]];
      if (!stale) answers = pages;
    }
    if (!answers) throw new ServiceError('unavailable', 'The run store answered out of turn.');
    return answers.map((answer, at) => {
      const page = pageOf(answer);
      const feed = this.projects.get(project)?.get((requests[at] as PageRequest).runId);
      if (feed && page) {
        feed.known = true;
        feed.token = page.token;
        feed.bytes += page.batches.reduce((sum, batch) => sum + batch.blob.length, 0);
        if (page.outcome && !feed.over) {
          feed.over = true;
          // The message of the end may have been lost, and what is over is not attended: the feed's other readers learn it here.
          for (const reader of feed.readers) reader.check();
        }
      }
      return page;
    });
  }

  private async unfollow(project: string, ids: RunId[]): Promise<undefined[]> {
    const { timings, gatewayId, commands, deliveries } = this.options;
    // After the accept that may still wait for the channel.
    await this.listen(project);
    // A reader that came meanwhile keeps the run.
    const gone = ids.filter((id) => !this.projects.get(project)?.has(id));
    if (gone.length > 0) {
      const args = [gatewayId, ++this.number, timings.handoverMs, ...gone];
      const due = (await withinLimit(runScript(commands, 'unfollow', project, args), timings.commandMs)) as Buffer[];
      deliveries.handOver(project, due.map(String));
    }
    return ids.map(() => undefined);
  }

  /** Only what is published after the channel is heard again comes live: attending before that would miss what lies between. */
  private readonly onReady = (): void => {
    for (const project of this.listening.keys()) {
      this.options.subscriber.ssubscribe(this.channel(project)).then(
        () => this.attendSafely(project),
        (error: unknown) => this.options.logger.warn({ err: error, project }, 'the channel was lost again'),
      );
    }
  };

  private readonly attendAll = (): void => {
    for (const project of this.listening.keys()) void this.attendSafely(project);
  };

  private async attendSafely(project: string): Promise<void> {
    try {
      for (let tries = 0; tries < STALE_TRIES; tries++) if (await this.attend(project)) return;
    } catch (error) {
      this.options.logger.warn({ err: error, project }, 'attending failed; tried again in a moment');
    }
  }

  /** @returns false when it was overtaken and did nothing */
  private async attend(project: string): Promise<boolean> {
    const { timings, gatewayId, commands, deliveries } = this.options;
    const feeds = [...(this.projects.get(project)?.values() ?? [])].filter((feed) => !feed.over);
    const args: ScriptArgument[] = [gatewayId, ++this.number, timings.leaseMs, timings.handoverMs];
    const asked = feeds.map((feed) => feed.known);
    for (const feed of feeds) args.push(feed.runId, furthest(feed), modeOf(feed));
    const [stale, answers, due] = (await withinLimit(
      runScript(commands, 'attend', project, args),
      timings.commandMs,
    )) as [number, [state: Buffer, last: number][], Buffer[]];
    if (stale) return false;
    deliveries.handOver(project, due.map(String));
    answers.forEach(([state, last], at) => {
      const feed = feeds[at] as Feed;
      if (state === undefined) {
        if (!asked[at]) return;
        feed.over = true;
        for (const reader of feed.readers) {
          reader.fail(new ServiceError('unavailable', 'The run was lost with the store.', { runId: feed.runId }));
        }
        return;
      }
      const open = state.equals(RUNNING) || state.equals(QUEUED);
      for (const reader of feed.readers) if (!open || (reader.mode === 'i' && last > reader.cursor)) reader.check();
    });
    return true;
  }
}

const RUNNING = Buffer.from('running');
const QUEUED = Buffer.from('queued');

const furthest = (feed: Feed): number => {
  let upTo = 0;
  for (const reader of feed.readers) if (reader.mode === 'i' && reader.cursor > upTo) upTo = reader.cursor;
  return upTo;
};

const modeOf = (feed: Feed): LiveMode => {
  for (const reader of feed.readers) if (reader.mode === 'i') return 'i';
  return 'o';
};

type EntryReply = [id: Buffer, kind: Buffer, blob: Buffer];
type OutcomeReply = [streamed: Buffer, ms: Buffer, ended: Buffer, status: Buffer, result: Buffer, error: Buffer];
type PageReply =
  | []
  | [state: Buffer, token: Buffer, last: number, registered: number, entries: EntryReply[], outcome: OutcomeReply | []];

function pageOf(reply: PageReply): LogPage | undefined {
  if (reply.length === 0) return undefined;
  const [state, token, last, registered, entries, ended] = reply;
  let outcome: Outcome | undefined;
  if (ended.length === 6) {
    const [streamed, ms, at, status, result, error] = ended;
    outcome = outcomeOf({
      state: state.toString(),
      items: last,
      streamed: streamed.toString() === '1',
      runTimeMs: ms.toString(),
      endedAt: Number(at),
      statusCode: Number(status.toString() || 0),
      result,
      error,
    });
  }
  return {
    token: token.toString(),
    last,
    registered: registered === 1,
    batches: entries.map(([id, kind, blob]) => batchOfEntry(id.toString(), kind.toString(), blob)),
    ...(outcome && { outcome }),
  };
}
