// A worker whose functions the test plays. It takes real runs from the real store and ends them as the test decides.
import { EventEmitter, once } from 'node:events';
import {
  type AnswerHead,
  type AppDescription,
  decodeRequest,
  type ErrorFields,
  type ForwardedRequest,
  type ItemKind,
  type Outcome,
} from '@inference-proxy/contracts';
import type { AppendAnswer, TakenRun, WorkerStore } from '@inference-proxy/store';

const APP: AppDescription = {
  app: 'chat',
  kind: 'functions',
  state: 'ready',
  version: '1',
  functions: [
    {
      name: 'run',
      doc: 'Says it again.',
      parameters: [{ name: 'text', required: true, annotation: 'str' }],
      extra: false,
    },
  ],
  queueLimit: 100,
  queueTimeoutMs: 60_000,
  preformatted: true,
};

/** Returns an app with the function `run`. `more` replaces fields. */
export const app = (more: Partial<AppDescription> = {}): AppDescription => ({ ...APP, ...more });

/** One run that the test plays. */
export class PlayedRun {
  #last = 0;

  readonly #store: WorkerStore;

  constructor(
    store: WorkerStore,
    readonly taken: TakenRun,
  ) {
    this.#store = store;
  }

  get params(): string {
    return this.taken.params.toString();
  }

  /** Returns the request for a custom runtime. */
  get request(): ForwardedRequest {
    return decodeRequest(this.taken.params);
  }

  /** Sends the head of a stream, as a custom runtime does. */
  async begins(head: AnswerHead): Promise<void> {
    const { project, runId, token } = this.taken;
    await this.#store.head(project, { runId, token, head });
  }

  /** Ends the run with the answer of a custom runtime. */
  answers(head: AnswerHead, body: string | Buffer = ''): Promise<void> {
    const result = Buffer.from(body);
    return this.#end({
      state: 'succeeded',
      streamed: false,
      head,
      statusCode: head.status,
      ...(result.length > 0 && { result }),
    });
  }

  /** Yields items. An item with newlines is a separate batch, of kind `m`. */
  async items(items: readonly string[], kind: ItemKind = 's'): Promise<AppendAnswer> {
    const batch = { first: this.#last + 1, count: items.length, kind, blob: Buffer.from(items.join('\n')) };
    this.#last += items.length;
    const { project, runId, token } = this.taken;
    return this.#store.append(project, { runId, token, batch });
  }

  /** Prints lines. */
  async prints(...texts: string[]): Promise<void> {
    const { project, runId, token } = this.taken;
    const lines = texts.map((text) => ({ at: Date.now(), stream: 'stdout' as const, text }));
    await this.#store.log(project, { runId, token, lines });
  }

  returns(json: string, more: Partial<Outcome> = {}): Promise<void> {
    return this.#end({ state: 'succeeded', streamed: false, result: Buffer.from(json), ...more });
  }

  /** Ends a stream. @param head the head of a custom runtime's stream */
  stops(head?: AnswerHead): Promise<void> {
    return this.#end({ state: 'succeeded', streamed: true, ...(head && { head, statusCode: head.status }) });
  }

  fails(error: ErrorFields, state: 'failed' | 'cancelled' | 'timed_out' = 'failed', items = this.#last): Promise<void> {
    return this.#end({ state, streamed: items > 0, error, items });
  }

  async #end(outcome: Pick<Outcome, 'state' | 'streamed'> & Partial<Outcome>): Promise<void> {
    const { project, runId, token } = this.taken;
    const whole = { items: this.#last, runTimeMs: '1.5', ...outcome };
    const answer = await this.#store.end(project, { runId, token, outcome: whole });
    if (answer.state !== 'ended') throw new Error(`the run could not be ended: ${answer.state}`);
  }
}

export class PlayedWorker {
  readonly #events = new EventEmitter();
  #woken = false;
  /** By run: number of the last item that a reader has taken, as reported to this worker. */
  readonly taken = new Map<string, number>();
  /** By run: time at which this worker got the run's cancel (monotonic ms). */
  readonly cancelledAt = new Map<string, number>();

  constructor(
    readonly store: WorkerStore,
    readonly project: string,
  ) {
    store.onWake = () => {
      this.#woken = true;
      this.#events.emit('wake');
    };
    store.onCancel = ({ runId }) => {
      this.cancelledAt.set(runId, performance.now());
      this.#events.emit('cancel', runId);
    };
    store.onReaderPosition = ({ runId, upTo }) => this.taken.set(runId, upTo);
  }

  async start(...apps: AppDescription[]): Promise<void> {
    await this.store.serve(this.project);
    for (const each of apps) await this.store.announce(this.project, each);
    await this.store.renew(
      this.project,
      [],
      apps.map(({ app: name }) => name),
    );
  }

  /** Waits for the next run of an app, and returns it. */
  async next(name = 'chat'): Promise<PlayedRun> {
    while (true) {
      this.#woken = false;
      const { runs } = await this.store.take(this.project, [{ app: name, slots: 1 }]);
      const [run] = runs;
      if (run) return new PlayedRun(this.store, run);
      if (!this.#woken) await once(this.#events, 'wake');
    }
  }

  /** Waits for the next cancel, and returns the id of its run. */
  async cancelled(): Promise<string> {
    const [runId] = (await once(this.#events, 'cancel')) as [string];
    return runId;
  }
  /** Waits for the cancel of a run. */
  async cancelOf(runId: string): Promise<void> {
    while (!this.cancelledAt.has(runId)) await once(this.#events, 'cancel');
  }
}
