// Calls a runtime in tests: records the run's events in order, and waits for events.
import { EventEmitter, once } from 'node:events';
import type { AnswerHead } from '@inference-proxy/contracts';
import type { LogLine } from '../printed-lines.ts';
import type { ItemsFrame, RunEnd, RunningRun, Runtime } from '../runtime.ts';

let last = 0;

/** The events of a run so far. */
export class Call {
  readonly runId = `00000000-0000-7000-8000-${String(++last).padStart(12, '0')}`;
  readonly frames: ItemsFrame[] = [];
  readonly lines: LogLine[] = [];
  readonly ended: Promise<RunEnd>;
  running: RunningRun | undefined;
  ends = 0;
  /** The number of dropped lines. */
  cut = 0;
  head: AnswerHead | undefined;
  readonly #events = new EventEmitter();

  constructor(runtime: Runtime, fn: string, params: object | string = {}, paced = false, traceparent?: string) {
    const ended = Promise.withResolvers<RunEnd>();
    this.ended = ended.promise;
    const bytes = Buffer.isBuffer(params)
      ? params
      : Buffer.from(typeof params === 'string' ? params : JSON.stringify(params));
    this.running = runtime.run(
      { runId: this.runId, fn, params: bytes, paced, ...(traceparent !== undefined && { traceparent }) },
      {
        head: (head) => {
          this.head = head;
          this.#events.emit('event');
        },
        items: (batch) => {
          this.frames.push({ ...batch, blob: Buffer.from(batch.blob) });
          this.#events.emit('event');
        },
        log: (lines) => {
          this.lines.push(...lines.lines());
          this.cut += lines.cut;
          this.#events.emit('event');
        },
        ended: (end) => {
          this.ends++;
          ended.resolve(end);
          this.#events.emit('event');
        },
      },
    );
  }

  /** The items as text, in order. */
  get items(): string[] {
    return this.frames.flatMap(({ kind, blob }) => (kind === 'm' ? [blob.toString()] : blob.toString().split('\n')));
  }

  get count(): number {
    return this.frames.reduce((sum, { count }) => sum + count, 0);
  }

  get printed(): string[] {
    return this.lines.map(({ text }) => text);
  }

  /** Resolves when the run's events make `test` true. */
  async until(test: () => boolean): Promise<void> {
    while (!test()) await once(this.#events, 'event');
  }

  /** Resolves with the plain result's text. */
  async result(): Promise<string | undefined> {
    return (await this.ended).result?.toString();
  }
}

/** Resolves when a runtime is in `state`. */
export function reached(runtime: Runtime, state: Runtime['state']): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = (): void => {
    if (runtime.state === state) resolve();
  };
  runtime.onChange(look);
  look();
  return promise;
}
