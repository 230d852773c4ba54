// Contract 5: a run's log lines as server-sent events, until the run has ended and all are told.
import type { ServerResponse } from 'node:http';
import { errorObject, ServiceError } from '@inference-proxy/contracts';
import type { LogLine, RunEvent, RunReader } from '@inference-proxy/store';
import { Subscription, takeWhile, tap } from 'rxjs';
import type { Interruption, OpenCall } from '../calls/departure.ts';
import { asServiceError, fieldsOf } from '../http/answer.ts';
import { logData } from './full-events.ts';
import { encodeEvent, errorData } from './sse-encoding.ts';
import type { StreamResponse } from './stream-response.ts';

/** All told, nobody there any more, or told by a last event why there is no more. */
export type LogStreamEnd = 'complete' | 'gone' | ServiceError;

/** Pulled as items are: what a socket does not take stays in the store. */
export class LogStream {
  /** Number of the last line written. */
  #line: number;
  #over = false;
  #subscription = Subscription.EMPTY;
  readonly #end = Promise.withResolvers<LogStreamEnd>();

  /** @param after number of the last line that the caller has */
  constructor(
    private readonly raw: ServerResponse,
    private readonly response: StreamResponse,
    private readonly reader: RunReader,
    after: number,
  ) {
    this.#line = after;
  }

  run(call: OpenCall): Promise<LogStreamEnd> {
    call.onInterrupt(this.#interrupted);
    call.onProbe(() => this.response.keepAlive());
    if (call.interruption === undefined) {
      this.response.flushHead();
      this.#pull();
    }
    return this.#end.promise;
  }

  readonly #pull = (): void => {
    this.#subscription = this.reader
      .events()
      .pipe(
        tap((event) => this.#take(event)),
        takeWhile(() => !this.response.full),
      )
      .subscribe({ complete: this.#paused, error: (thrown: unknown) => this.#fail(asServiceError(thrown)) });
  };

  #take(event: RunEvent): void {
    if (event.type === 'outcome') this.#over = true;
    else if (event.type === 'log') this.#write(event.line);
  }

  #write(line: LogLine): void {
    const missing = line.seq - this.#line - 1;
    this.#line = line.seq;
    if (missing > 0) this.response.write(encodeEvent('cut', { lines: missing }));
    this.response.write(encodeEvent('log', logData(line), line.seq));
  }

  /** All is told, or the socket is full. */
  readonly #paused = (): void => {
    if (!this.#over) {
      this.raw.once('drain', this.#pull);
      return;
    }
    this.response.end();
    this.#end.resolve('complete');
  };

  readonly #interrupted = (why: Interruption): void => {
    this.#subscription.unsubscribe();
    this.raw.off('drain', this.#pull);
    if (why !== 'gone') this.#fail(why);
    else {
      this.response.leave();
      this.#end.resolve('gone');
    }
  };

  #fail(error: ServiceError): void {
    this.response.write(encodeEvent('error', errorData(this.reader.runId, errorObject(fieldsOf(error)))));
    this.response.end();
    this.#end.resolve(error);
  }
}
