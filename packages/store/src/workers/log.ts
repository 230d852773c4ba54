// Contract 5, "Logs: `GET /runs/{run_id}/logs`": writes the lines that functions print, by log.lua. Lines are joined per tick and never delay a run.
import type { RunId } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { TickBatch, withinLimit } from '../redis.ts';
import { encodeLines, type NewLogLine } from '../runs/run-log.ts';
import { codeIn, listIn, runScript, type Script, type ScriptArgument } from '../scripts.ts';

/** Lines that a run's function printed. */
export interface LogPart {
  readonly runId: RunId;
  readonly token: string;
  readonly lines: readonly NewLogLine[];
  /** Rising within the attempt. The store recognizes a repeated part by its number. Absent if no part is repeated. */
  readonly number?: number;
  /** Number of lines that were dropped just before these lines; 0 by default. */
  readonly dropped?: number;
}

interface Written extends LogPart {
  readonly dropped: number;
  readonly json: string;
}

interface LogArguments {
  /** Bytes of a run's log that are kept. */
  readonly maxBytes: number;
  readonly parts: readonly (Written & { readonly number: number })[];
}

const logScript: Script<LogArguments, ('ok' | 'lost')[]> = {
  name: 'log',
  encode: ({ maxBytes, parts }) => {
    const args: ScriptArgument[] = [maxBytes];
    for (const { runId, token, number, lines, dropped, json } of parts)
      args.push(runId, token, number, lines.length, dropped, json);
    return args;
  },
  decode: (reply) => listIn(reply).map((code) => codeIn(code, ['ok', 'lost'])),
};

/** Overhead of a line as JSON, beside its text. */
const LINE_BYTES = 40;

export class LogWriter {
  /** Number of the last part that came without a number. */
  #number = 0;
  readonly #parts: TickBatch<Written, 'ok' | 'lost'>;

  readonly #redis: Redis;
  readonly #maxBytes: number;
  readonly #limitMs: number;

  /** @param maxBytes bytes of a run's log that are kept */
  constructor(redis: Redis, maxBytes: number, limitMs: number) {
    this.#redis = redis;
    this.#maxBytes = maxBytes;
    this.#limitMs = limitMs;

    this.#parts = new TickBatch(
      (project, parts) => this.#send(project, parts),
      ({ json }) => json.length,
    );
  }

  write(project: string, part: LogPart): Promise<'ok' | 'lost'> {
    if (part.lines.length === 0) return Promise.resolve('ok');
    const lines = this.#newest(part.lines);
    const dropped = (part.dropped ?? 0) + part.lines.length - lines.length;
    return this.#parts.add(project, { ...part, lines, dropped, json: encodeLines(lines) });
  }

  /** Returns the last lines, as many as will be kept. A single line that is longer is cut. */
  #newest(lines: readonly NewLogLine[]): readonly NewLogLine[] {
    let from = lines.length;
    for (let bytes = 0; from > 0; from--) {
      bytes += (lines[from - 1] as NewLogLine).text.length + LINE_BYTES;
      if (bytes > this.#maxBytes) break;
    }
    if (from < lines.length) return from === 0 ? lines : lines.slice(from);
    const last = lines[lines.length - 1] as NewLogLine;
    return [{ ...last, text: last.text.slice(0, Math.max(0, this.#maxBytes - LINE_BYTES)) }];
  }

  async #send(project: string, parts: Written[]): Promise<('ok' | 'lost')[]> {
    const numbered = parts.map((part) => ({ ...part, number: part.number ?? ++this.#number }));
    const sent = runScript(this.#redis, logScript, project, { maxBytes: this.#maxBytes, parts: numbered });
    return withinLimit(sent, this.#limitMs);
  }
}
