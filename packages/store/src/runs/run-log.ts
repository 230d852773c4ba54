// Contract 5, logs: what a function printed, in numbered lines, several to a part. Bounded: the newest are kept, the cut can be counted.
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../time-limit.ts';

export interface LogLine {
  /** From 1 in each run; a jump tells how many were cut. */
  readonly seq: number;
  /** When it was printed, Unix ms. */
  readonly at: number;
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
}

/** A line as its worker hands it over. */
export type NewLogLine = Omit<LogLine, 'seq'>;

export interface RunLog {
  readonly lines: readonly LogLine[];
  /** How many lines after the asked-for one are kept no longer. */
  readonly cut: number;
  /** The run has ended: nothing comes but last words on their way. */
  readonly ended: boolean;
}

/** A part's lines as they are stored and published. */
export const encodeLines = (lines: readonly NewLogLine[]): string =>
  JSON.stringify(lines.map(({ at, stream, text }) => [at, stream, text]));

/** @param first number of the first line */
export function decodeLines(first: number, json: string): LogLine[] {
  const lines = JSON.parse(json) as [at: number, stream: LogLine['stream'], text: string][];
  return lines.map(([at, stream, text], n) => ({ seq: first + n, at, stream, text }));
}

/** The lines of a stored part: `<number of its first line> <how many>`, a newline and the lines. */
export function linesOfPart(part: Buffer): LogLine[] {
  const end = part.indexOf(0x0a);
  return decodeLines(Number.parseInt(part.toString('latin1', 0, end), 10), part.toString('utf8', end + 1));
}

/**
 * The kept lines after `after`.
 *
 * @returns undefined where the run is unknown
 * @throws ServiceError `unavailable`
 */
export async function readLog(
  redis: Redis,
  project: string,
  runId: RunId,
  after: number,
  limitMs: number,
): Promise<RunLog | undefined> {
  const prefix = projectPrefix(project);
  // In this order: what an ended run says after its end is not waited for, what it said before is there.
  const fields = redis.hmget(prefix + names.run + runId, 'state', 'lines');
  const [[state, last], parts] = await withinLimit(
    Promise.all([fields, redis.lrangeBuffer(prefix + names.log + runId, 0, -1)]),
    limitMs,
  );
  if (!state) return undefined;
  const lines = parts.flatMap(linesOfPart).filter(({ seq }) => seq > after);
  const reached = lines.at(-1)?.seq ?? Math.max(after, Number(last ?? 0));
  return { lines, cut: Math.max(0, reached - after - lines.length), ended: state !== 'queued' && state !== 'running' };
}
