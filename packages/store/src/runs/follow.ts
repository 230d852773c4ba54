// Contract 5: reads pages of runs' entries and follows the runs, by follow.lua.
import { type AnswerHead, decodeHead, type ItemBatch, type Outcome, type RunId } from '@inference-proxy/contracts';
import { bytesIn, listIn, numberIn, type Script, type ScriptArgument, type ScriptReply, textIn } from '../scripts.ts';
import { batchOfEntry, type FollowerMode, outcomeOf } from './codec.ts';
import { type LogLine, linesOfPart } from './run-log.ts';

/** One page of a run's entries. */
export interface LogPage {
  readonly token: string;
  /** Number of the run's last item. */
  readonly last: number;
  readonly batches: readonly ItemBatch[];
  /** Set if the run has ended and `batches` reaches its end. */
  readonly outcome?: Outcome;
  /** The head of a custom runtime's answer, for a reader without items. */
  readonly head?: AnswerHead;
  /** True if every later entry arrives live. */
  readonly registered: boolean;
  /** Start of this attempt (Unix ms), for readers that follow everything. */
  readonly startedAt?: number;
  /** Number of the last printed line, and the requested lines. */
  readonly lastLine: number;
  readonly lines: readonly LogLine[];
}

/** A place in a run, and what its readers follow from there. */
export interface PageRequest {
  readonly runId: RunId;
  readonly cursor: number;
  readonly mode: FollowerMode;
  /** Number of the last log line that the readers have; undefined for only future lines. */
  readonly line: number | undefined;
}

export interface FollowArguments {
  readonly gatewayId: string;
  /** Rising per gateway. */
  readonly number: number;
  readonly leaseMs: number;
  /** Bytes of all pages together. */
  readonly maxBytes: number;
  readonly pages: readonly PageRequest[];
}

/** Returns one page per request (undefined: the run is gone), or `stale` if a later call of this gateway was first. */
export const followScript: Script<FollowArguments, 'stale' | (LogPage | undefined)[]> = {
  name: 'follow',
  encode: ({ gatewayId, number, leaseMs, maxBytes, pages }) => {
    const args: ScriptArgument[] = [gatewayId, number, leaseMs, maxBytes];
    for (const { runId, cursor, mode, line } of pages) args.push(runId, cursor, mode, line ?? '-');
    return args;
  },
  decode: (reply) => {
    const [stale, pages] = listIn(reply);
    return stale === 1 ? 'stale' : listIn(pages).map(pageOf);
  },
};

function pageOf(reply: ScriptReply): LogPage | undefined {
  const answer = listIn(reply);
  if (answer.length === 0) return undefined;
  const [state, token, last, registered, entries, ended, started, lastLine, log, head] = answer;
  const [headText, startedAt] = [textIn(head), textIn(started)];
  const page = {
    token: textIn(token),
    last: numberIn(last),
    registered: registered === 1,
    batches: listIn(entries).map((entry) => {
      const [id, kind, blob] = listIn(entry);
      return batchOfEntry(textIn(id), textIn(kind), bytesIn(blob));
    }),
    ...(headText !== '' && { head: decodeHead(headText) }),
    ...(startedAt !== '' && { startedAt: Number(startedAt) }),
    lastLine: numberIn(lastLine),
    lines: listIn(log).flatMap((part) => linesOfPart(bytesIn(part))),
  };
  const outcome = listIn(ended);
  return outcome.length === 0 ? page : { ...page, outcome: outcomeIn(outcome, textIn(state), page.last) };
}

function outcomeIn(values: readonly ScriptReply[], state: string, items: number): Outcome {
  const [streamed, ms, at, status, result, error, head, resultBytes] = values;
  return outcomeOf({
    state,
    items,
    streamed: textIn(streamed) === '1',
    runTimeMs: textIn(ms),
    endedAt: Number(textIn(at)),
    statusCode: Number(textIn(status) || 0),
    result: bytesIn(result),
    resultBytes: numberIn(resultBytes),
    error: bytesIn(error),
    head: bytesIn(head),
  });
}
