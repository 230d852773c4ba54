// Contract 5, "Logs: `GET /runs/{run_id}/logs`": numbered lines that a function printed, several in each part. The newest lines are kept,
// and the cut lines can be counted.
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { names, projectPrefix } from '../keys.ts';
import { withinLimit } from '../redis.ts';

export interface LogLine {
  /** From 1 in each run. A jump shows the number of cut lines. */
  readonly seq: number;
  /** Time at which the line was printed, Unix ms. */
  readonly at: number;
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
}

/** A line before the store numbers it. */
export type NewLogLine = Omit<LogLine, 'seq'>;

export interface RunLog {
  readonly lines: readonly LogLine[];
  /** Number of lines after the requested line that are no longer kept. */
  readonly cut: number;
  /** The run has ended. Only its last lines may still arrive. */
  readonly ended: boolean;
}

/** Encodes the lines of a part for the store and for live messages. */
export const encodeLines = (lines: readonly NewLogLine[]): string =>
  JSON.stringify(lines.map(({ at, stream, text }) => [at, stream, text]));

/** @param first number of the first line */
export function decodeLines(first: number, json: string): LogLine[] {
  const lines = JSON.parse(json) as [at: number, stream: LogLine['stream'], text: string][];
  return lines.map(([at, stream, text], n) => ({ seq: first + n, at, stream, text }));
}

/** Returns the lines of a stored part: `<number of its first line> <number of lines>`, a newline and the lines. */
export function linesOfPart(part: Buffer): LogLine[] {
  const end = part.indexOf(0x0a);
  return decodeLines(Number.parseInt(part.toString('latin1', 0, end), 10), part.toString('utf8', end + 1));
}

/**
 * Returns the kept lines after `after`.
 *
 * @returns undefined if the run is unknown
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
  // The state is read before the lines. So an ended run's answer has every line from before its end, and does not wait for later lines.
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
