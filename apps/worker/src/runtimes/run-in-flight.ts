// Contract 5: one run in a replica. The listener gets exactly one end, and no event after it.
import type { AnswerHead, ErrorFields, RunId } from '@inference-proxy/contracts';
import { Credits } from './credits.ts';
import type { PrintedLines } from './printed-lines.ts';
import type { ErrorMessage, HeadMessage, TerminalMessage } from './protocol.ts';
import type { CancelReason, ItemsFrame, RunEnd, RunListener } from './runtime.ts';

const cancelErrors: Readonly<Record<CancelReason, ErrorFields>> = {
  cancelled: { code: 'cancelled', message: 'the run was cancelled' },
  timed_out: { code: 'timed_out', message: 'the run took longer than its time limit' },
  unavailable: { code: 'unavailable', message: 'the worker stopped before the run had ended' },
};

const stateOf = (reason: CancelReason): RunEnd['state'] => (reason === 'unavailable' ? 'failed' : reason);

/** Returns the end of a run that never reached its function. */
export const notStarted = (state: RunEnd['state'], error: ErrorFields): RunEnd => ({
  state,
  items: 0,
  streamed: false,
  error,
  runTimeMs: 0,
});

/** Returns the end of a run that was cancelled before it reached its function. */
export const cancelledBeforeStart = (reason: CancelReason): RunEnd => notStarted(stateOf(reason), cancelErrors[reason]);

export class RunInFlight {
  readonly runId: RunId;
  /** Counts the items of the run for which its process has no credit. */
  readonly credits = new Credits();
  /** The first reason of the cancel. */
  reason: CancelReason | undefined;
  /** Called once, at the end of the run and before its listener. Closes the request to the run's server. */
  release: (() => void) | undefined;
  readonly #listener: RunListener;
  readonly #startedAt = performance.now();
  readonly #timers = new Set<NodeJS.Timeout>();
  #items = 0;
  #streamed = false;
  #hasOutput = false;
  #ended = false;
  /** The head of the answer of a function whose answer is a body. */
  #head: AnswerHead | undefined;

  constructor(runId: RunId, listener: RunListener) {
    this.runId = runId;
    this.#listener = listener;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Whether the run has streamed or printed before its end. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /** Starts a timer that is cleared at the end of the run. */
  after(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, ms);
    this.#timers.add(timer);
  }

  /** Records that the function's answer is a body. */
  answers({ status, media, form }: HeadMessage): void {
    this.#head = { status, headers: media === undefined ? [] : [['content-type', media]], form };
  }

  started(): void {
    this.#hasOutput = true;
    this.#streamed = true;
  }

  items(batch: ItemsFrame): void {
    // A failure before the first piece has its own status, so the head waits for the piece.
    if (this.#items === 0 && this.#head) this.#listener.head(this.#head);
    this.#items += batch.count;
    this.#listener.items(batch);
  }

  log(lines: PrintedLines): void {
    this.#hasOutput = true;
    this.#listener.log(lines);
  }

  /** Ends the run as the harness reports it. A run over its time limit is `timed_out` in any case. A cancelled run may still succeed. */
  terminal(message: TerminalMessage, result: Buffer, debug: boolean): void {
    const common = { items: this.#items, streamed: message.streamed, runTimeMs: message.ms };
    if (this.reason === 'timed_out' || message.t === 'cancelled') {
      const reason = this.reason ?? 'cancelled';
      this.#end({ ...common, state: stateOf(reason), error: cancelErrors[reason] });
    } else if (message.t === 'error') {
      this.#end({ ...common, state: 'failed', error: errorOf(message, debug) });
    } else {
      const head = this.#head;
      const statusCode = head?.status ?? message.status;
      this.#end({
        ...common,
        state: 'succeeded',
        ...(!message.streamed && { result }),
        ...(head && { head }),
        ...(statusCode !== undefined && { statusCode }),
      });
    }
  }

  /** Reports the head of a server's answer that streams. */
  head(head: AnswerHead): void {
    this.started();
    this.#listener.head(head);
  }

  /** Ends the run with a server's complete answer. `body` is set if the answer did not stream. Does nothing if the run has ended. */
  answered(head: AnswerHead, body: Buffer | undefined): void {
    if (this.#ended) return;
    const result = body && body.length > 0 && { result: body };
    this.#end({ ...this.#soFar(), state: 'succeeded', head, statusCode: head.status, ...result });
  }

  /** Ends a cancelled run whose function does not stop. */
  giveUp(reason: CancelReason): void {
    this.#end({ ...this.#soFar(), state: stateOf(reason), error: cancelErrors[reason] });
  }

  /** Ends the run because its process ended or its server failed. A cancelled run keeps the state of its cancel. */
  crashed(error: ErrorFields): void {
    if (this.reason === undefined) this.#end({ ...this.#soFar(), state: 'failed', error });
    else this.giveUp(this.reason);
  }

  #soFar(): Pick<RunEnd, 'items' | 'streamed' | 'runTimeMs'> {
    const runTimeMs = Math.round((performance.now() - this.#startedAt) * 1000) / 1000;
    return { items: this.#items, streamed: this.#streamed, runTimeMs };
  }

  #end(end: RunEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.release?.();
    this.#listener.ended(end);
  }
}

function errorOf(message: ErrorMessage, debug: boolean): ErrorFields {
  const { code, type, details, status, retry_after: retryAfter, traceback } = message;
  return {
    code,
    message: message.message,
    ...(type !== undefined && { type }),
    ...(details !== undefined && { details }),
    ...(status !== undefined && { status }),
    ...(retryAfter !== undefined && { retryAfter }),
    ...(debug && traceback !== undefined && { traceback }),
  };
}
