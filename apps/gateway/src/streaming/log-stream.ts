// Contract 5, "Logs: `GET /runs/{run_id}/logs`": streams a run's log lines as events until the run has ended and all lines are sent.
import type { ServerResponse } from 'node:http';
import { errorObject } from '@inference-proxy/contracts';
import type { LogLine, RunReader } from '@inference-proxy/store';
import { asServiceError, fieldsOf } from '../http/answer.ts';
import type { OpenCall } from '../http/open-calls.ts';
import { encodeEvent, errorData, logData } from './events.ts';
import {
  type EntryConsumer,
  type EventsHead,
  type KeepAlive,
  LiveResponse,
  type RunEntry,
  type StreamEnd,
  writeEventsHead,
} from './live-response.ts';

/** Pulls lines as items are pulled: lines that the socket cannot take stay in the store. */
export class LogStream implements EntryConsumer {
  /** Number of the last line that was written. */
  #line: number;
  readonly #response: LiveResponse;

  readonly #reader: RunReader;
  readonly #head: EventsHead;

  /** @param after number of the last line that the caller has */
  constructor(raw: ServerResponse, reader: RunReader, keepAlives: KeepAlive, head: EventsHead, after: number) {
    this.#reader = reader;
    this.#head = head;

    this.#line = after;
    this.#response = new LiveResponse(raw, reader, keepAlives, this);
  }

  /** Writes the lines until the run's end, or until the call is interrupted. */
  run(call: OpenCall): Promise<StreamEnd> {
    return this.#response.run(call, () => {
      writeEventsHead(this.#response.raw, this.#head);
      this.#response.open({ gzip: this.#head.gzip, comments: true });
      this.#response.raw.flushHeaders();
    });
  }

  next(entry: RunEntry): void {
    if (entry.type === 'log') this.#write(entry.line);
  }

  finish(): void {
    this.#response.end({ how: 'complete' });
  }

  fail(thrown: unknown): void {
    const error = asServiceError(thrown);
    if (!this.#response.isOpen) {
      this.#response.settle({ how: 'early', error });
      return;
    }
    this.#response.write(encodeEvent('error', errorData(this.#reader.runId, errorObject(fieldsOf(error)))));
    this.#response.end({ how: 'failed', error });
  }

  #write(line: LogLine): void {
    const missing = line.seq - this.#line - 1;
    this.#line = line.seq;
    if (missing > 0) this.#response.write(encodeEvent('cut', { lines: missing }));
    this.#response.write(encodeEvent('log', logData(line), line.seq));
  }
}
