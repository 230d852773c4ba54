// One page of a run's log, as the `follow` script answers.
import { type AnswerHead, decodeHead, type ItemBatch, type Outcome } from '@inference-proxy/contracts';
import { batchOfEntry } from './batches.ts';
import { outcomeOf } from './outcome-codec.ts';
import { type LogLine, linesOfPart } from './run-log.ts';

/** One page of a run's log, as `follow` answers. */
export interface LogPage {
  readonly token: string;
  /** Number of the run's last item. */
  readonly last: number;
  readonly batches: readonly ItemBatch[];
  /** Set when the run has ended and `batches` reaches its end. */
  readonly outcome?: Outcome;
  /** Of the answer of an app's own web server; only for who has no item yet. */
  readonly head?: AnswerHead;
  /** True when what comes after this page comes live. */
  readonly registered: boolean;
  /** When this attempt started (Unix ms), for readers of all there is. */
  readonly startedAt?: number;
  /** Number of the last line that was printed, and the lines asked for. */
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
/** The script's answer for one run; empty when the run is gone. */
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

/** The page, or `undefined` when the run is gone. */
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
