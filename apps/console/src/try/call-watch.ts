// The answer of one call, as the answer arrives.
import { signal } from '@preact/signals';
import type { ErrorObject } from '../api/api.ts';
import { type CallOptions, call } from '../api/call.ts';
import { eventsOf } from '../api/events.ts';
import { ItemLog } from '../runs/item-log.ts';

export interface AnswerHead {
  readonly status: number;
  readonly runId: string | undefined;
  readonly headers: readonly (readonly [string, string])[];
  readonly type: string;
  /** Milliseconds from the request to the head of the answer. */
  readonly tookMs: number;
}

export class CallWatch {
  readonly head = signal<AnswerHead | undefined>(undefined);
  readonly items = new ItemLog();
  /** The whole body, if the answer is not a stream. */
  readonly bytes = signal<Uint8Array<ArrayBuffer> | undefined>(undefined);
  readonly error = signal<ErrorObject | undefined>(undefined);
  readonly failure = signal<Error | undefined>(undefined);
  readonly open = signal(true);
  readonly #stop = new AbortController();

  constructor(path: string, body: string | FormData, options: CallOptions) {
    void this.#run(path, body, options);
  }

  /** Disconnects. The service then cancels a run without another reader. */
  stop(): void {
    this.#stop.abort();
  }

  async #run(path: string, body: string | FormData, options: CallOptions): Promise<void> {
    const began = performance.now();
    try {
      const answer = await call(path, body, { ...options, signal: this.#stop.signal });
      const type = answer.headers.get('content-type') ?? '';
      this.head.value = {
        status: answer.status,
        runId: answer.headers.get('x-request-id') ?? undefined,
        headers: [...answer.headers],
        type,
        tookMs: performance.now() - began,
      };
      if (type.startsWith('text/event-stream')) await this.#readEvents(answer);
      else await this.#readBody(answer, type);
    } catch (error) {
      if (!this.#stop.signal.aborted) this.failure.value = error as Error;
    }
    this.open.value = false;
  }

  async #readEvents(answer: Response): Promise<void> {
    for await (const { event, data } of eventsOf(answer))
      if (event === 'error') this.error.value = (JSON.parse(data) as { error: ErrorObject }).error;
      else this.items.add(data);
  }

  async #readBody(answer: Response, type: string): Promise<void> {
    const bytes = new Uint8Array(await answer.arrayBuffer());
    this.bytes.value = bytes;
    if (answer.ok || !type.startsWith('application/json')) return;
    const { error } = JSON.parse(new TextDecoder().decode(bytes)) as { error?: ErrorObject };
    this.error.value = error;
  }
}
