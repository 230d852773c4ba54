// What a function prints during a run: one line each in the worker's log, under the run's id.
import type { LogLine } from '../runtimes/runtime.ts';

const LINE_CHARACTERS = 8 * 1024;
/** A function that prints in a loop must not drown its neighbours' lines, nor the worker in writing them. */
const LINES_PER_SECOND = 500;

/** Writes a run's lines, so many a second at most, and tells how many were left out. */
export class RunLog {
  private since = 0;
  private lines = 0;
  private leftOut = 0;

  constructor(
    private readonly logger: { info(fields: object, text: string): void; warn(fields: object, text: string): void },
    private readonly fields: {
      readonly runId: string;
      readonly project: string;
      readonly app: string;
      readonly fn: string;
    },
  ) {}

  line({ stream, text }: LogLine): void {
    const now = performance.now();
    if (now - this.since >= 1_000) {
      this.tellLeftOut();
      this.since = now;
      this.lines = 0;
    }
    if (this.lines === LINES_PER_SECOND) {
      this.leftOut++;
      return;
    }
    this.lines++;
    const cut = text.length > LINE_CHARACTERS ? `${text.slice(0, LINE_CHARACTERS)}…` : text;
    this.logger.info({ ...this.fields, stream }, cut);
  }

  /** The run has ended. */
  end(): void {
    this.tellLeftOut();
  }

  private tellLeftOut(): void {
    if (this.leftOut === 0) return;
    this.logger.warn(
      { ...this.fields, leftOut: this.leftOut },
      'lines of this run were left out: too many in one second',
    );
    this.leftOut = 0;
  }
}
