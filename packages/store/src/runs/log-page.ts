// Decodes one page of a run's entries from the reply of lua/follow.
import { type AnswerHead, decodeHead, type ItemBatch, type Outcome } from '@inference-proxy/contracts';
import { batchOfEntry } from './batches.ts';
import { outcomeOf } from './outcome-codec.ts';
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

type EntryReply = [id: Buffer, kind: Buffer, blob: Buffer];
type OutcomeReply = [
  streamed: Buffer,
  ms: Buffer,
  ended: Buffer,
  status: Buffer,
  result: Buffer,
  error: Buffer,
  head: Buffer,
  resultBytes: number,
];
/** The script's answer for one run. It is empty if the run is gone. */
export type PageReply =
  | []
  | [
      state: Buffer,
      token: Buffer,
      last: number,
      registered: number,
      entries: EntryReply[],
      outcome: OutcomeReply | [],
      started: Buffer,
      lines: number,
      log: Buffer[],
      head: Buffer,
    ];

/** Returns the page, or `undefined` if the run is gone. */
export function pageOf(reply: PageReply): LogPage | undefined {
  if (reply.length === 0) return undefined;
  const [state, token, last, registered, entries, ended, started, lastLine, log, head] = reply;
  let outcome: Outcome | undefined;
  if (ended.length === 8) {
    const [streamed, ms, at, status, result, error, head, resultBytes] = ended;
    outcome = outcomeOf({
      state: state.toString(),
      items: last,
      streamed: streamed.toString() === '1',
      runTimeMs: ms.toString(),
      endedAt: Number(at),
      statusCode: Number(status.toString() || 0),
      result,
      resultBytes,
      error,
      head,
    });
  }
  return {
    token: token.toString(),
    last,
    registered: registered === 1,
    batches: entries.map(([id, kind, blob]) => batchOfEntry(id.toString(), kind.toString(), blob)),
    ...(outcome && { outcome }),
    ...(head.length > 0 && { head: decodeHead(head.toString()) }),
    ...(started.length > 0 && { startedAt: Number(started) }),
    lastLine,
    lines: log.flatMap(linesOfPart),
  };
}
