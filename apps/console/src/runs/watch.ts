// Watches one run: its record, its items and its lines, live and after a break of the connection. Contract 5.
import { computed, signal } from '@preact/signals';
import type { EventSourceMessage } from 'eventsource-parser';
import { type Delivery, deliveriesOfRun, type LogLine, lookUpRun, type Run, readLogs, streamUrl } from '../api/api.ts';
import { resumedEvents } from '../api/events.ts';
import { type Parameters, readParameters } from '../api/parameters.ts';
import { ApiError, Unreachable } from '../api/request.ts';
import { ItemLog } from './item-log.ts';

/** New lines within this time (ms) cost one request. */
const LINES_PAUSE_MS = 250;
const WEBHOOK_EVERY_MS = 2_000;
const RETRY_MS = 1_000;
const DONE_WEBHOOKS = new Set(['delivered', 'failed']);

export const hasEnded = ({ status }: Run): boolean => status !== 'queued' && status !== 'running';

const isLast = ({ event }: EventSourceMessage): boolean => event === 'done' || event === 'error';

export class RunWatch {
  readonly #project: string;
  readonly #runId: string;
  readonly run = signal<Run | undefined>(undefined);
  readonly problem = signal<Error | undefined>(undefined);
  /** Why the stream cannot be shown, such as items that are no longer kept. */
  readonly streamProblem = signal<Error | undefined>(undefined);
  readonly items = new ItemLog();
  readonly lines = signal<readonly LogLine[]>([]);
  /** The number of lines that the store no longer has. */
  readonly cutLines = signal(0);
  readonly deliveries = signal<readonly Delivery[]>([]);
  readonly parameters = signal<Parameters | undefined>(undefined);
  /** Why the page cannot show the parameters. */
  readonly noParameters = signal<string | undefined>(undefined);
  readonly live = computed(() => this.run.value !== undefined && !hasEnded(this.run.value));
  readonly #stop = new AbortController();
  #linesDue: ReturnType<typeof setTimeout> | undefined;

  constructor(project: string, runId: string) {
    this.#project = project;
    this.#runId = runId;
  }

  /** Watches until the returned function is called. */
  begin(): () => void {
    this.#quietly(this.#watch());
    return () => {
      clearTimeout(this.#linesDue);
      this.#stop.abort();
    };
  }

  /** Looks the run up again, after a cancel. */
  changed(): void {
    this.#quietly(this.#refresh());
  }

  async #refresh(): Promise<void> {
    const found = await this.#whenReachable(() => lookUpRun(this.#project, this.#runId, this.#stop.signal));
    const known = this.run.peek();
    // An answer from before the end may arrive after the answer from after the end.
    if (known === undefined || !hasEnded(known) || hasEnded(found)) this.run.value = found;
  }

  async #watch(): Promise<void> {
    await this.#refresh();
    this.#quietly(this.#readParameters());
    this.#quietly(this.#watchDeliveries());
    await this.#readLines();
    await this.#readItems();
    if (this.live.peek()) await this.#refresh();
    await this.#readLines();
  }

  async #readItems(): Promise<void> {
    const run = this.run.peek();
    if (run && hasEnded(run) && run.items === 0) return;
    try {
      const url = streamUrl(this.#project, this.#runId);
      for await (const event of resumedEvents(url, this.#stop.signal, isLast)) this.#take(event);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.streamProblem.value = error;
    }
  }

  #take({ event, data }: EventSourceMessage): void {
    if (event === 'item') this.items.add(data);
    else if (event === 'log') this.#linesDue ??= setTimeout(() => this.#quietly(this.#readLines()), LINES_PAUSE_MS);
    else if (event === 'started') this.#quietly(this.#refresh());
    else if (event === 'error') this.#tookError(data);
  }

  /** The stream may end because its items are gone, while the run continues. */
  #tookError(data: string): void {
    const { error } = JSON.parse(data) as { error: ConstructorParameters<typeof ApiError>[1] };
    if (error.code === 'items_gone') this.streamProblem.value = new ApiError(410, error);
  }

  /** Reads the lines after the newest known line. Their numbers make a repeated event harmless. */
  async #readLines(): Promise<void> {
    const known = this.lines.peek();
    const after = known.at(-1)?.seq ?? 0;
    try {
      const { logs, cut } = await this.#whenReachable(() =>
        readLogs(this.#project, this.#runId, after, this.#stop.signal),
      );
      this.cutLines.value = cut;
      if (logs.length > 0 && this.lines.peek() === known) this.lines.value = [...known, ...logs];
    } finally {
      this.#linesDue = undefined;
    }
  }

  async #readParameters(): Promise<void> {
    try {
      this.parameters.value = await this.#whenReachable(() =>
        readParameters(this.#project, this.#runId, this.#stop.signal),
      );
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.noParameters.value = error.message;
    }
  }

  /** Polls the deliveries until they are done. */
  async #watchDeliveries(): Promise<void> {
    while (!this.#stop.signal.aborted && this.run.peek()?.webhook !== undefined) {
      if (document.visibilityState === 'visible') await this.readDeliveries().catch(() => {});
      const open = this.deliveries.peek().some(({ status }) => !DONE_WEBHOOKS.has(status));
      if (!open && !this.live.peek()) return;
      await this.#pause(WEBHOOK_EVERY_MS);
    }
  }

  async readDeliveries(): Promise<void> {
    const { deliveries } = await deliveriesOfRun(this.#project, this.#runId, this.#stop.signal);
    this.deliveries.value = deliveries;
  }

  /** Watches the deliveries again, after a redelivery. */
  redelivered(): void {
    this.#quietly(this.#watchDeliveries());
  }

  /** Shows an error of work that nobody awaits. A page that was left has none. */
  #quietly(work: Promise<void>): void {
    work.catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.problem.value = error as Error;
    });
  }

  /** Repeats a request until the gateway answers. The banner reports the loss. */
  async #whenReachable<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const later = error instanceof Unreachable || (error instanceof ApiError && error.status === 503);
        if (!later || this.#stop.signal.aborted) throw error;
        await this.#pause(RETRY_MS);
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }
}
