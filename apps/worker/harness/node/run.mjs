// PROTOCOL.md, "A run": one run from `run` to its terminal message.
import { formatWithOptions } from 'node:util';
import { immediate, now } from './clock.mjs';
import { Items } from './items.mjs';

export class Run {
  /** Set when the function returns a stream. Most runs have none. @type {Items | undefined} */
  items;
  /** Set when the run prints for the first time. @type {import('./lines.mjs').Lines | undefined} */
  lines;
  /** The worker has cancelled the run. */
  cancelled = false;
  /** The terminal message is decided. */
  over = false;
  startedAt = now();
  /** Ends the source of the items early. Set while the function's stream is read. @type {(() => void) | undefined} */
  stopSource;
  #channel;
  #limits;
  /** Made at the first use, because most functions use no signal. @type {AbortController | undefined} */
  #controller;
  #sealDue = false;

  /**
   * @param {import('./types.d.ts').WorkerMessage} header
   * @param {import('./channel.mjs').Channel} channel
   * @param {import('./types.d.ts').Limits} limits
   */
  constructor(header, channel, limits) {
    this.id = header.r;
    this.functionName = header.f;
    this.paced = header.paced;
    this.traceparent = header.tp;
    this.#channel = channel;
    this.#limits = limits;
  }

  get signal() {
    this.#controller ??= new AbortController();
    if (this.cancelled && !this.#controller.signal.aborted) this.#controller.abort(aborted());
    return this.#controller.signal;
  }

  /** Requests that the function ends. */
  cancel() {
    if (this.over || this.cancelled) return;
    this.cancelled = true;
    this.abort();
  }

  /** Aborts the signal, and ends the source of the items. */
  abort() {
    // Listeners of the app run in here. Node reports what they throw as uncaught exceptions.
    this.#controller?.abort(aborted());
    this.items?.stop();
    this.stopSource?.();
  }

  /**
   * Announces that the answer is a body.
   *
   * @param {import('./types.d.ts').Head} head
   */
  answers(head) {
    this.#channel.send({ t: 'head', r: this.id, ...head });
  }

  /** Announces that items follow. */
  beginStream() {
    this.items = new Items(this, this.#channel, this.#limits);
    this.#channel.send({ t: 'started', r: this.id });
    return this.items;
  }

  /** Sends the pending items at the end of this turn of the event loop. */
  sealSoon() {
    if (this.#sealDue) return;
    this.#sealDue = true;
    immediate(() => {
      this.#sealDue = false;
      if (this.over) return;
      this.items?.seal();
      this.#channel.flush();
    });
  }

  /**
   * Ends the run with its result (JSON text, or a body after its head), or without a result after its items.
   *
   * @param {string | Buffer | undefined} result
   * @param {number | undefined} status
   */
  finish(result, status) {
    this.items?.seal();
    if (this.items?.overflow) {
      this.fail({ code: 'output_too_large', message: `the run's output is over ${this.#limits.output} bytes` });
      return;
    }
    this.#channel.send({ ...this.#terminal('done'), status }, result);
  }

  /** @param {import('./types.d.ts').ErrorFields} error */
  fail(error) {
    this.items?.seal();
    this.#channel.send({ ...this.#terminal('error'), ...error });
  }

  /** Ends the run as cancelled. */
  finishCancelled() {
    this.items?.seal();
    this.#channel.send(this.#terminal('cancelled'));
  }

  /** @param {string} kind */
  #terminal(kind) {
    const items = this.items?.number ?? 0;
    const ms = Math.round((now() - this.startedAt) * 1000) / 1000;
    return { t: kind, r: this.id, items, streamed: this.items !== undefined, ms };
  }
}

const aborted = () => new DOMException('the run was cancelled', 'AbortError');

/** The second argument of a function. Its signal exists from the first use on. */
export class RunContext {
  #run;
  #logs;

  /**
   * @param {Run} run
   * @param {import('./logs.mjs').Logs} logs
   */
  constructor(run, logs) {
    this.#run = run;
    this.#logs = logs;
  }

  get signal() {
    return this.#run.signal;
  }

  get runId() {
    return this.#run.id;
  }

  get traceparent() {
    return this.#run.traceparent;
  }

  /** Prints a line into the log of the run, whatever code calls it. */
  get log() {
    return (/** @type {unknown[]} */ ...values) =>
      this.#logs.print(this.#run, 'o', `${formatWithOptions({ colors: false }, ...values)}\n`);
  }
}
