// Contract 3 and Contract 5: one reader of one run. It gets every item once and in order, from the store or live, then the outcome.
import { type AnswerHead, type ItemBatch, type Outcome, type RunId, ServiceError } from '@inference-proxy/contracts';
import { retry } from '@inference-proxy/retry';
import { Observable, type Subscriber } from 'rxjs';
import { storeError } from '../store-error.ts';
import { after, type FollowerMode, type LiveMessage, lastOf, wantsItems, wantsLog } from './codec.ts';
import type { LogPage } from './follow.ts';
import type { LogLine } from './run-log.ts';

/** An event of a reader: the things that it follows, in order, then one outcome. */
export type RunEvent =
  | { readonly type: 'items'; readonly batch: ItemBatch }
  /** Once, before items and outcome, if the reader asked for the head and the answer has one. */
  | { readonly type: 'head'; readonly head: AnswerHead }
  | { readonly type: 'log'; readonly line: LogLine }
  /** `at` is Unix ms. The event is repeated if the run went back to the queue. */
  | { readonly type: 'started'; readonly at: number }
  | { readonly type: 'outcome'; readonly outcome: Outcome };

/** The part of `Feeds` that a reader uses. */
export interface ReaderSource {
  /** Reads the entries after `cursor`, and registers for later entries. Returns `undefined` if the run is gone. */
  page(reader: RunReader): Promise<LogPage | undefined>;
  /** The reader's cursor moved. */
  moved(reader: RunReader): void;
  left(reader: RunReader): void;
}

/** Longest time after which the store is read again if it was away. */
const AGAIN_MS = 500;

interface Waiter {
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
  /** The answer is a body, and its head is known. May be called several times. */
  headed?: (() => void) | undefined;
}

/** How a read run ended for its reader. */
type Ended = { readonly outcome: Outcome } | { readonly error: ServiceError };

/**
 * Reads one run. Live entries pass by their number. After a gap, or after anything missed without a subscriber, the reader reads the store.
 * Nothing is buffered for a reader that does not take: such a reader costs its cursor.
 */
export class RunReader {
  /** Number of the last item that was handed out. */
  cursor: number;
  /** Number of the last log line that was handed out; undefined if the reader wants only future lines. */
  line: number | undefined;
  /** The reader's position among the existing items. Its cursor may lie beyond them. */
  reached = 0;
  #subscriber: Subscriber<RunEvent> | undefined;
  #waiter: Waiter | undefined;
  /** The attempt whose items were handed out. A reader never mixes two attempts. There may be two after Redis has lost its last writes. */
  #token: string | undefined;
  /** A page is being read. Live entries in this time are not kept: `behind` makes the reader read the store once more. */
  #reading = false;
  /** The store holds entries that this reader has not seen. */
  #behind: boolean;
  #ended: Ended | undefined;
  #closed = false;
  /** The store has answered that the run exists. */
  #known: boolean;
  /** The attempt whose start was handed out. */
  #started: string | undefined;
  /** The head was handed out. */
  #headed = false;

  readonly #source: ReaderSource;
  readonly #wantsHead: boolean;

  /**
   * @param cursor number of the last item (of the last log line, for `l`) that the caller has
   * @param registered true if the feed is live from the run's first item (accepted by this gateway)
   * @param wantsHead the reader reads the answer of a custom runtime: no item is handed out before the head
   */
  constructor(
    readonly project: string,
    readonly runId: RunId,
    readonly mode: FollowerMode,
    cursor: number,
    registered: boolean,
    source: ReaderSource,
    wantsHead = false,
  ) {
    this.#source = source;
    this.#wantsHead = wantsHead;

    this.cursor = mode === 'l' ? 0 : cursor;
    // Logs are not resumed (Contract 3). A resumed stream gets only future lines.
    this.line = mode === 'l' || cursor === 0 ? cursor : undefined;
    this.#behind = !registered;
    this.#known = registered;
  }

  /** True after the end was handed out, or after it was found to be unreachable. */
  get finished(): boolean {
    return this.#ended !== undefined;
  }

  /**
   * Emits the entries after the cursor, in order, each once, then the outcome; then completes. Unsubscribing pauses the reader. Subscribing
   * again continues at the cursor. Emission is synchronous: a subscriber that unsubscribes inside `next` gets nothing further.
   *
   * @throws ServiceError `not_found` if there is no such run; `items_gone` if the next item is no longer kept; `unavailable` if the run was
   * lost, or if the store is away before it has confirmed the run
   */
  events(): Observable<RunEvent> {
    return new Observable((subscriber) => {
      this.#subscriber = subscriber;
      subscriber.add(() => {
        if (this.#subscriber === subscriber) this.#subscriber = undefined;
      });
      if (this.#ended) this.#settle();
      else if (this.#behind) void this.#readOn();
    });
  }

  /**
   * Returns only the outcome. Rejects with the errors of `events`. A reader that follows items gets the outcome after all items were taken.
   *
   * @param headed called when a reader of the outcome learns that the answer is a body. A lost message is not repeated: the outcome has the head
   */
  outcome(headed?: () => void): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject, headed };
      if (this.#ended) this.#settle();
      else if (this.#behind) void this.#readOn();
    });
  }

  /** Closes the reader. If the run has no other reader on any gateway, the run's `absentMs` decides its fate. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#subscriber = undefined;
    this.#waiter = undefined;
    this.#source.left(this);
  }

  /** Takes a live message about this run. */
  live(message: LiveMessage): void {
    if (this.#ended) return;
    const idle = this.#reading || !this.#subscriber;
    switch (message.type) {
      case 'items':
        if (!wantsItems(this.mode)) return;
        if (idle) this.#behind = true;
        else if (message.batch.first > this.cursor + 1 || this.#behind || this.#awaitsHead) this.check();
        else this.#take(message.batch, message.token);
        return;
      case 'head':
        if (this.mode === 'o') this.#waiter?.headed?.();
        if (!this.#awaitsHead) return;
        if (idle) this.#behind = true;
        else if (this.#behind) this.check();
        else this.#emitHead(message.head, message.token);
        return;
      case 'stored':
        if (wantsItems(this.mode) && message.last > this.cursor) this.check();
        return;
      case 'started':
        if (this.mode !== 'f') return;
        if (idle || this.#behind) this.check();
        else this.#start(message.token, message.at);
        return;
      case 'log': {
        if (!wantsLog(this.mode)) return;
        const [first] = message.lines;
        if (idle) this.#behind = true;
        else if (this.#behind || (first?.seq ?? 0) > (this.line ?? 0) + 1) this.check();
        else this.#emitLines(message.lines);
        return;
      }
      case 'ended':
        if (this.mode === 'o') this.#end({ outcome: message.outcome });
        // A lost log line leaves no gap if it was the last line. So the store is read.
        else if (idle || wantsLog(this.mode) || message.outcome.items > this.cursor) this.check();
        else this.#end({ outcome: message.outcome });
        return;
      case 'ended-stored':
        this.check();
    }
  }

  /** Returns whether the store has items or log lines that this reader wants and has not handed out. */
  misses(lastItem: number, lastLine: number): boolean {
    if (wantsItems(this.mode) && lastItem > this.cursor) return true;
    return wantsLog(this.mode) && this.line !== undefined && lastLine > this.line;
  }

  /** Reads the store, which may hold entries that this reader has not seen. */
  check(): void {
    if (this.#ended) return;
    this.#behind = true;
    if (!this.#reading && this.#wanted) void this.#readOn();
  }

  /** Ends the reader with an error. */
  fail(error: ServiceError): void {
    if (!this.#ended) this.#end({ error });
  }

  /** Whether a subscriber or waiter would take a page. */
  get #wanted(): boolean {
    return this.#subscriber !== undefined || (!wantsItems(this.mode) && this.#waiter !== undefined);
  }

  /** Whether an item now would come before its head. A lost head leaves no gap in the numbers of items. */
  get #awaitsHead(): boolean {
    return this.#wantsHead && !this.#headed && this.cursor === 0;
  }

  #emitHead(head: AnswerHead, token: string | undefined): void {
    this.#headed = true;
    this.#token = token;
    this.#subscriber?.next({ type: 'head', head });
  }

  #take(batch: ItemBatch, token: string): void {
    if (lastOf(batch) <= this.cursor) return;
    if (this.#token !== undefined && this.#token !== token && (this.cursor > 0 || this.#headed)) {
      this.#end({
        error: new ServiceError('unavailable', 'The run was executed again; its earlier items are lost.', {
          runId: this.runId,
        }),
      });
      return;
    }
    this.#token = token;
    const part = after(batch, this.cursor);
    this.cursor = lastOf(batch);
    this.reached = this.cursor;
    this.#subscriber?.next({ type: 'items', batch: part });
    this.#source.moved(this);
  }

  #start(token: string, at: number): void {
    if (this.#started === token) return;
    this.#started = token;
    this.#subscriber?.next({ type: 'started', at });
  }

  #emitLines(lines: readonly LogLine[]): void {
    for (const line of lines) {
      if (line.seq <= (this.line ?? 0)) continue;
      if (!this.#subscriber) {
        this.#behind = true;
        return;
      }
      this.line = line.seq;
      this.#subscriber.next({ type: 'log', line });
    }
  }

  #end(how: Ended): void {
    this.#ended = how;
    this.#settle();
  }

  #settle(): void {
    const subscriber = this.#subscriber;
    const waiter = this.#waiter;
    const ended = this.#ended;
    if (!ended) return;
    this.#waiter = undefined;
    if ('error' in ended) {
      waiter?.reject(ended.error);
      subscriber?.error(ended.error);
      return;
    }
    waiter?.resolve(ended.outcome);
    if (subscriber && ended.outcome.head && this.#awaitsHead) this.#emitHead(ended.outcome.head, this.#token);
    subscriber?.next({ type: 'outcome', outcome: ended.outcome });
    subscriber?.complete();
  }

  async #readOn(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    try {
      while (this.#behind && !this.#ended && !this.#closed && this.#wanted) {
        this.#behind = false;
        const page = await retry(() => this.#page(), { firstMs: AGAIN_MS, failed: this.#failed });
        if (this.#closed || this.#ended) return;
        if (!page) {
          const { runId } = this;
          const error = this.#known
            ? new ServiceError('unavailable', 'The run store has lost the run.', { runId })
            : new ServiceError('not_found', 'There is no such run, or its retention has ended.');
          this.#end({ error });
          return;
        }
        this.#accept(page);
      }
    } catch (cause) {
      this.#end({ error: storeError(cause) });
    } finally {
      this.#reading = false;
    }
  }

  async #page(): Promise<LogPage | undefined> {
    return this.#closed || this.#ended ? undefined : this.#source.page(this);
  }

  /** Ends the retries of a page, unless the store is away and the run is known. A reader of a known run waits until the store is back. */
  readonly #failed = (error: unknown): void => {
    if (!this.#known || !(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
  };

  #accept(page: LogPage): void {
    this.#known = true;
    const { startedAt } = page;
    if (startedAt !== undefined && this.mode === 'f' && this.#subscriber) this.#start(page.token, startedAt);
    this.line ??= page.lastLine;
    this.#emitLines(page.lines);
    const had = Math.min(this.cursor, page.last);
    if (had > this.reached) {
      this.reached = had;
      this.#source.moved(this);
    }
    if (page.head && this.mode === 'o') this.#waiter?.headed?.();
    if (page.head && this.#subscriber && this.#awaitsHead) this.#emitHead(page.head, page.token);
    for (const batch of page.batches) {
      if (!this.#subscriber) {
        this.#behind = true;
        return;
      }
      if (batch.first > this.cursor + 1) {
        this.#end({
          error: new ServiceError('items_gone', 'The next items are no longer kept.', { runId: this.runId }),
        });
        return;
      }
      this.#take(batch, page.token);
      if (this.#ended) return;
    }
    if (page.outcome && (!wantsItems(this.mode) || this.cursor >= page.last)) {
      if (this.#subscriber || this.#waiter) this.#end({ outcome: page.outcome });
      else this.#behind = true;
    } else if (!page.registered) {
      this.#behind = true;
    }
  }
}
