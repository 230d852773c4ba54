// Contract 3: writes a run's items to the run store, numbered from 1 and joined for each tick.
import type { AnswerHead, ItemBatch, ItemKind } from '@inference-proxy/contracts';
import { backOffMs } from '@inference-proxy/retry';
import type { WorkerStore } from '@inference-proxy/store';

/** The most bytes of an append, unless a single item is larger. Above 256 KiB the store publishes only the number, and gateways read again. */
const BATCH_BYTES = 128 * 1024;
/** Two open appends hide a round trip. More would only use more memory. */
const IN_FLIGHT = 2;
/** The bytes that a run may hold here before its function must wait, because the store is away or slower than the function. */
const HOLD_BYTES = 1024 * 1024;
const GO_ON_BYTES = 256 * 1024;
/** The step of a run's credit. It is a quarter of the window, so that the process never waits for a step. */
const CREDIT_BYTES = 256 * 1024;
/** The step in items, because worker and process record every frame without credit. */
const CREDIT_ITEMS = 1024;
const RETRY = { firstMs: 50, lastMs: 2_000 };

/** The run, and the fence of the attempt, which every write names. */
export interface AttemptKey {
  readonly project: string;
  readonly runId: string;
  readonly token: string;
}

/** Receives the events of a writer. */
export interface WriterListener {
  /** The writer holds too much, so the function must wait. */
  full(): void;
  /** The writer has room again. */
  drained(): void;
  /** The store has the items up to this number; reported every 256 KiB or 1,024 items. */
  stored(upTo: number): void;
  /** Readers have taken items up to this number. */
  readTo(upTo: number): void;
  /** A client asked to cancel the run. */
  cancelled(): void;
  /** Another attempt holds the run. The writer has stopped. */
  lost(): void;
  /** The next items exceed the project's share of the run store. The writer has stopped. */
  refused(): void;
  /** The store lost acknowledged items, so the stream would have a hole. `last` is the last number in the store. */
  gap(last: number): void;
}

interface Chunk {
  readonly count: number;
  readonly kind: ItemKind;
  readonly blob: Buffer;
}

const NEWLINE = Buffer.from('\n');

/** Takes chunks of one kind from the front of `waiting`, up to the batch's size. */
function join(waiting: Chunk[], first: number): ItemBatch {
  const head = waiting[0] as Chunk;
  let bytes = head.blob.length;
  let count = head.count;
  let chunks = 1;
  if (head.kind !== 'm' && head.kind !== 'b')
    for (; chunks < waiting.length; chunks++) {
      const next = waiting[chunks] as Chunk;
      if (next.kind !== head.kind || bytes + 1 + next.blob.length > BATCH_BYTES) break;
      bytes += 1 + next.blob.length;
      count += next.count;
    }
  const joined = waiting.splice(0, chunks);
  const blob =
    chunks === 1
      ? head.blob
      : Buffer.concat(joined.flatMap((chunk, at) => (at === 0 ? [chunk.blob] : [NEWLINE, chunk.blob])));
  return { first, count, kind: head.kind, blob };
}

const lastOf = (batch: ItemBatch): number => batch.first + batch.count - 1;

/**
 * Writes the items of an attempt in order, each once.
 *
 * A batch is kept until the store acknowledges it. A batch whose reply is lost is sent again unchanged, so a repeat is harmless.
 */
export class RunWriter {
  /** Chunks without numbers. */
  readonly #waiting: Chunk[] = [];
  /** Numbered batches without an acknowledgement. The first `sent` batches are in flight. */
  readonly #batches: ItemBatch[] = [];
  #sent = 0;
  #inFlight = 0;
  #held = 0;
  /** Bytes that are stored and not yet reported. */
  #unreported = 0;
  /** The last reported number. */
  #reported = 0;
  #pushed = 0;
  #numbered = 0;
  #acknowledged = 0;
  #isFull = false;
  #isScheduled = false;
  #stopped = false;
  /** After a failed append, nothing is sent until every reply has arrived and the timer has fired. */
  #recovering = false;
  /** Number of failed writes in a row. */
  #failures = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  /** True while the head of a server's answer is being written. Items must wait for the head. */
  #heading = false;
  #finished: (() => void) | undefined;
  /** Bytes of all items so far. `execute-run.ts` compares them with `max_output_bytes`; the harness has made the first check. */
  bytes = 0;

  readonly #store: Pick<WorkerStore, 'append' | 'head'>;
  readonly #attempt: AttemptKey;
  readonly #listener: WriterListener;

  constructor(store: Pick<WorkerStore, 'append' | 'head'>, attempt: AttemptKey, listener: WriterListener) {
    this.#store = store;
    this.#attempt = attempt;
    this.#listener = listener;
  }

  /** Returns the number of items that were pushed. */
  get items(): number {
    return this.#pushed;
  }

  /** Returns the number of items that the store has acknowledged. */
  get written(): number {
    return this.#acknowledged;
  }

  /** Writes the head of a server's answer. Must be called before the first item. */
  head(head: AnswerHead): void {
    if (this.#stopped) return;
    this.#heading = true;
    void this.#sendHead(head);
  }

  push(kind: ItemKind, count: number, blob: Buffer): void {
    if (this.#stopped) return;
    this.#waiting.push({ kind, count, blob });
    this.#pushed += count;
    this.bytes += blob.length;
    this.#held += blob.length;
    if (this.#held > HOLD_BYTES && !this.#isFull) {
      this.#isFull = true;
      this.#listener.full();
    }
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // All frames of a read from the function's process form a batch.
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  /** Resolves when the head and all pushed items are acknowledged, or when the writer has stopped. */
  async finish(): Promise<void> {
    if (this.#stopped || this.#isDone) return;
    await new Promise<void>((resolve) => {
      this.#finished = resolve;
    });
  }

  /** Drops all waiting items and sends nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.length = 0;
    this.#batches.length = 0;
    this.#held = 0;
    clearTimeout(this.#retryTimer);
    this.#finished?.();
  }

  get #isDone(): boolean {
    return !this.#heading && this.#acknowledged === this.#pushed;
  }

  /** Writes the head and repeats the write until it is acknowledged. A repeat is harmless. */
  async #sendHead(head: AnswerHead): Promise<void> {
    const { project, runId, token } = this.#attempt;
    const answer = await this.#store.head(project, { runId, token, head }).catch(() => undefined);
    if (this.#stopped) return;
    if (answer === undefined) {
      this.#retryTimer = setTimeout(() => void this.#sendHead(head), backOffMs(++this.#failures, RETRY));
    } else if (answer !== 'ok') {
      this.#over(answer);
    } else {
      this.#heading = false;
      this.#retryTimer = undefined;
      this.#failures = 0;
      this.#send();
      if (this.#isDone) this.#finished?.();
    }
  }

  #send(): void {
    while (!this.#stopped && !this.#heading && !this.#recovering && this.#inFlight < IN_FLIGHT) {
      if (this.#sent === this.#batches.length) {
        if (this.#waiting.length === 0) return;
        const batch = join(this.#waiting, this.#numbered + 1);
        this.#numbered += batch.count;
        this.#batches.push(batch);
      }
      const batch = this.#batches[this.#sent] as ItemBatch;
      this.#sent++;
      this.#inFlight++;
      void this.#append(batch);
    }
  }

  async #append(batch: ItemBatch): Promise<void> {
    const { project, runId, token } = this.#attempt;
    const reply = await this.#store.append(project, { runId, token, batch }).catch(() => undefined);
    this.#inFlight--;
    if (this.#stopped) return;
    if (reply === undefined) this.#recover(undefined);
    else if (reply.state === 'lost' || reply.state === 'full') this.#over(reply.state);
    else if (reply.state === 'behind') this.#recover(reply.last);
    else {
      this.#failures = 0;
      this.#acknowledge(lastOf(batch));
      this.#listener.readTo(reply.position);
      if (reply.cancel) this.#listener.cancelled();
      this.#proceed();
    }
  }

  #over(why: 'lost' | 'full'): void {
    this.stop();
    if (why === 'lost') this.#listener.lost();
    else this.#listener.refused();
  }

  #acknowledge(last: number): void {
    while (this.#batches[0] && lastOf(this.#batches[0]) <= last) {
      const batch = this.#batches.shift() as ItemBatch;
      this.#held -= batch.blob.length;
      this.#unreported += batch.blob.length;
      if (this.#sent > 0) this.#sent--;
    }
    this.#acknowledged = Math.max(this.#acknowledged, last);
    if (this.#unreported >= CREDIT_BYTES || this.#acknowledged - this.#reported >= CREDIT_ITEMS) {
      this.#unreported = 0;
      this.#reported = this.#acknowledged;
      this.#listener.stored(this.#acknowledged);
    }
    if (this.#isFull && this.#held < GO_ON_BYTES) {
      this.#isFull = false;
      this.#listener.drained();
    }
    if (this.#isDone) this.#finished?.();
  }

  /** Handles an append that was refused (the store has items up to `last`) or not answered (`last` is undefined). */
  #recover(last: number | undefined): void {
    if (last !== undefined) {
      const next = this.#batches.find((batch) => lastOf(batch) > last);
      // Batches are resent unchanged. The store's last number must therefore be the end of a batch, and not below the acknowledged number.
      if (last < this.#acknowledged || last > this.#numbered || (next && next.first !== last + 1)) {
        this.stop();
        this.#listener.gap(last);
        return;
      }
      this.#acknowledge(last);
    }
    this.#recovering = true;
    if (this.#retryTimer !== undefined) return;
    const again = (): void => {
      this.#retryTimer = undefined;
      this.#proceed();
    };
    this.#retryTimer = setTimeout(again, backOffMs(++this.#failures, RETRY));
  }

  #proceed(): void {
    if (this.#recovering) {
      if (this.#inFlight > 0 || this.#retryTimer !== undefined) return;
      this.#recovering = false;
      this.#sent = 0;
    }
    this.#send();
  }
}
