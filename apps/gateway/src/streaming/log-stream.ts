// Contract 5, "Logs: `GET /runs/{run_id}/logs`": streams a run's log lines as events until the run has ended and all lines are sent.
import type { ServerResponse } from 'node:http';
import { errorObject, type ServiceError } from '@inference-proxy/contracts';
import type { LogLine, RunReader } from '@inference-proxy/store';
import { asServiceError, fieldsOf } from '../http/answer.ts';
import type { Interruption, OpenCall } from '../http/open-calls.ts';
import { EntryPull, type EntryTaker, type RunEntry } from './entry-pull.ts';
import { logData } from './full-events.ts';
import { encodeEvent, errorData } from './sse-encoding.ts';
import type { StreamResponse } from './stream-response.ts';

/** All lines are sent, or the reader has disconnected, or a last event has reported this error. */
export type LogStreamEnd = 'complete' | 'gone' | ServiceError;

/** Pulls lines as items are pulled: lines that the socket cannot take stay in the store. */
export class LogStream implements EntryTaker {
  /** Number of the last line that was written. */
  #line: number;
  readonly #pull: EntryPull;
  readonly #end = Promise.withResolvers<LogStreamEnd>();

  readonly #response: StreamResponse;
  readonly #reader: RunReader;

  /** @param after number of the last line that the caller has */
  constructor(raw: ServerResponse, response: StreamResponse, reader: RunReader, after: number) {
    this.#response = response;
    this.#reader = reader;

    this.#line = after;
    this.#pull = new EntryPull(raw, reader, this);
  }

  run(call: OpenCall): Promise<LogStreamEnd> {
    call.onInterrupt(this.#interrupted);
    call.onProbe(() => this.#response.keepAlive());
    if (call.interruption === undefined) {
      this.#response.flushHead();
      this.#pull.start();
    }
    return this.#end.promise;
  }

  take(entry: RunEntry): void {
    if (entry.type === 'log') this.#write(entry.line);
  }

  finish(): void {
    this.#response.end();
    this.#end.resolve('complete');
  }

  fail(thrown: unknown): void {
    const error = asServiceError(thrown);
    this.#response.write(encodeEvent('error', errorData(this.#reader.runId, errorObject(fieldsOf(error)))));
    this.#response.end();
    this.#end.resolve(error);
  }

  #write(line: LogLine): void {
    const missing = line.seq - this.#line - 1;
    this.#line = line.seq;
    if (missing > 0) this.#response.write(encodeEvent('cut', { lines: missing }));
    this.#response.write(encodeEvent('log', logData(line), line.seq));
  }

  readonly #interrupted = (why: Interruption): void => {
    this.#pull.stop();
    if (why !== 'gone') this.fail(why);
    else {
      this.#response.leave();
      this.#end.resolve('gone');
    }
  };
}
