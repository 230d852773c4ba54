// Encodes and decodes the parts of a run that Redis stores and publishes: packed fields, outcomes, batches of items, and messages.
// The Lua side is src/parts/run.lua, which describes the packed fields.
import {
  type AnswerHead,
  decodeHead,
  type EndState,
  type ErrorFields,
  encodeHead,
  type ItemBatch,
  type ItemKind,
  type Outcome,
  type RunId,
} from '@inference-proxy/contracts';
import { decodeLines, type LogLine } from './run-log.ts';

const NEWLINE = 0x0a;

/** The parts of a call that accept.lua joins with app, function, time and traceparent. */
export interface CallTerms {
  readonly keepMs: number;
  readonly absentMs?: number;
  readonly promised: boolean;
  readonly paced: boolean;
  /** Absent: true. False: an item that is the text of whole events is sent as data. */
  readonly preformatted?: boolean;
  /** Absent: false. The parameters are a request to a web server. */
  readonly isRequest?: boolean;
  readonly webhook?: unknown;
  readonly idempotency?: unknown;
}

/** Returns the terms of the field `call`. */
export function packTerms(run: CallTerms): string {
  const { promised, paced, webhook, idempotency, preformatted, isRequest } = run;
  const flags =
    (promised ? 'p' : '') +
    (paced ? 's' : '') +
    (webhook ? 'h' : '') +
    (idempotency ? 'c' : '') +
    (preformatted === false ? 'w' : '') +
    (isRequest ? 'r' : '');
  return `${run.keepMs} ${run.absentMs ?? '-'} ${flags || '-'}`;
}

export interface RecordedCall {
  readonly app: string;
  readonly fn: string;
  /** Unix ms of the store's clock. */
  readonly acceptedAt: number;
  readonly promised: boolean;
  readonly paced: boolean;
  readonly preformatted: boolean;
  readonly isRequest: boolean;
  readonly traceparent?: string;
}

/** Reads the field `call`. */
export function readCall(field: string): RecordedCall {
  const [app = '', fn = '', accepted, , , flags = '', traceparent] = field.split(' ');
  return {
    app,
    fn,
    acceptedAt: Number(accepted),
    promised: flags.includes('p'),
    paced: flags.includes('s'),
    preformatted: !flags.includes('w'),
    isRequest: flags.includes('r'),
    ...(traceparent !== undefined && { traceparent }),
  };
}

/** Reads the field `attempt`. @param field undefined before the first attempt, whose number is 0 */
export function readAttempt(field: string | undefined): { number: number; startedAt?: number } {
  const [number = '0', , started = '-'] = field?.split(' ') ?? [];
  return { number: Number(number), ...(started !== '-' && { startedAt: Number(started) }) };
}

/** Reads the field `hold`: returns whether an attempt of a delivery is open at `now`, Unix ms. */
export function isHeld(field: string | undefined, now: number): boolean {
  const [, upto, lease] = field?.split(' ') ?? [];
  return Number(upto) > now && Number(upto) <= now + 2 * Number(lease);
}

/** Contract 9: the error of a run whose items or result exceed its project's share of the run store. The same text as in src/workers/end.lua. */
export const overShare: ErrorFields = {
  code: 'output_too_large',
  message: 'The output exceeds the share of the run store that its project may use.',
};

/** Returns the arguments of end.lua that most outcomes of a tick share: all except run time and result. */
export function outcomeKind(outcome: Omit<Outcome, 'endedAt'>): (string | number)[] {
  return [
    outcome.state,
    outcome.items,
    outcome.streamed ? 1 : 0,
    outcome.statusCode ?? '',
    outcome.error?.code ?? '',
    outcome.error ? JSON.stringify(outcome.error) : '',
    outcome.head ? encodeHead(outcome.head) : '',
  ];
}

/** Returns an outcome from its stored parts. An absent `result`, `error` or `head` is empty. */
export function outcomeOf(parts: {
  state: string;
  items: number;
  streamed: boolean;
  runTimeMs: string;
  endedAt: number;
  statusCode: number;
  result: Buffer;
  resultBytes?: number;
  error: Buffer;
  head: Buffer;
}): Outcome {
  return {
    state: parts.state as EndState,
    items: parts.items,
    streamed: parts.streamed,
    runTimeMs: parts.runTimeMs,
    endedAt: parts.endedAt,
    ...(parts.result.length > 0 && { result: parts.result }),
    ...(parts.resultBytes && { resultBytes: parts.resultBytes }),
    ...(parts.error.length > 0 && { error: JSON.parse(parts.error.toString()) as ErrorFields }),
    ...(parts.statusCode > 0 && { statusCode: parts.statusCode }),
    // The record of a broken stream has the head. If the store itself ended the run, the outcome has no head. So only a success has one.
    ...(parts.head.length > 0 && parts.state === 'succeeded' && { head: decodeHead(parts.head.toString()) }),
  };
}

/** Returns the number of the batch's last item. */
export const lastOf = (batch: ItemBatch): number => batch.first + batch.count - 1;

/** Returns the part of a batch after item `cursor`, which lies inside the batch. */
export function after(batch: ItemBatch, cursor: number): ItemBatch {
  const skip = cursor - batch.first + 1;
  if (skip <= 0) return batch;
  let at = 0;
  for (let n = 0; n < skip; n++) at = batch.blob.indexOf(NEWLINE, at) + 1;
  return { first: cursor + 1, count: batch.count - skip, kind: batch.kind, blob: batch.blob.subarray(at) };
}

/** Returns the batch of an entry in the items stream: id `<last number>-<count>`, one field whose name is the kind. */
export function batchOfEntry(id: string, kind: string, blob: Buffer): ItemBatch {
  const dash = id.indexOf('-');
  const count = Number(id.slice(dash + 1));
  return { first: Number(id.slice(0, dash)) - count + 1, count, kind: kind as ItemKind, blob };
}

/** The code of `Following` in the store: `o` only the outcome, `i` items or an answer, `l` log lines, `f` rich. */
export type FollowerMode = 'o' | 'i' | 'l' | 'f';

/**
 * The events that a reader follows beside the outcome. `FollowerMode` has the codes that the store keeps:
 *
 * - `outcome`  no other events
 * - `items`    items
 * - `answer`   the answer of a custom runtime: its head, then items
 * - `logs`     log lines
 * - `rich`     the events of a rich stream: items, log lines and the start
 */
export type Following = 'outcome' | 'items' | 'answer' | 'logs' | 'rich';

export const MODES: Readonly<Record<Following, FollowerMode>> = {
  outcome: 'o',
  items: 'i',
  answer: 'i',
  logs: 'l',
  rich: 'f',
};

export const wantsItems = (mode: FollowerMode): boolean => mode === 'i' || mode === 'f';
export const wantsLog = (mode: FollowerMode): boolean => mode === 'l' || mode === 'f';

/** One message about one run. `token` names the attempt. */
export type LiveMessage =
  | { readonly type: 'items'; readonly runId: RunId; readonly token: string; readonly batch: ItemBatch }
  /** The head of a custom runtime's answer. */
  | { readonly type: 'head'; readonly runId: RunId; readonly token: string; readonly head: AnswerHead }
  /** Items up to `last` are in the store. They are too large to publish. */
  | { readonly type: 'stored'; readonly runId: RunId; readonly token: string; readonly last: number }
  | { readonly type: 'ended'; readonly runId: RunId; readonly token: string; readonly outcome: Outcome }
  | { readonly type: 'started'; readonly runId: RunId; readonly token: string; readonly at: number }
  | { readonly type: 'log'; readonly runId: RunId; readonly token: string; readonly lines: readonly LogLine[] }
  /** The run has ended. The outcome is in the store, because it is too large to publish. */
  | { readonly type: 'ended-stored'; readonly runId: RunId };

/** Parses all messages of one publication. Blobs are slices of `published`. */
export function* liveMessages(published: Buffer): Generator<LiveMessage> {
  let at = 0;
  while (at < published.length) {
    const end = published.indexOf(NEWLINE, at);
    const part = published.toString('latin1', at, end).split(' ');
    at = end + 1;
    const runId = part[1] as string;
    const token = part[2] as string;
    switch (part[0]) {
      case 'i': {
        const size = Number(part[6]);
        const blob = published.subarray(at, at + size);
        at += size;
        const batch = { first: Number(part[3]), count: Number(part[4]), kind: part[5] as ItemKind, blob };
        yield { type: 'items', runId, token, batch };
        break;
      }
      case 'n':
        yield { type: 'stored', runId, token, last: Number(part[3]) };
        break;
      case 'e': {
        const resultEnd = at + Number(part[9]);
        const errorEnd = resultEnd + Number(part[10]);
        const headEnd = errorEnd + Number(part[11]);
        const outcome = outcomeOf({
          state: part[3] as string,
          items: Number(part[4]),
          streamed: part[5] === '1',
          runTimeMs: part[6] as string,
          endedAt: Number(part[7]),
          statusCode: Number(part[8]),
          result: published.subarray(at, resultEnd),
          error: published.subarray(resultEnd, errorEnd),
          head: published.subarray(errorEnd, headEnd),
        });
        at = headEnd;
        yield { type: 'ended', runId, token, outcome };
        break;
      }
      case 'h': {
        const headEnd = at + Number(part[3]);
        yield { type: 'head', runId, token, head: decodeHead(published.toString('utf8', at, headEnd)) };
        at = headEnd;
        break;
      }
      case 's':
        yield { type: 'started', runId, token, at: Number(part[3]) };
        break;
      case 'l': {
        const size = Number(part[5]);
        yield {
          type: 'log',
          runId,
          token,
          lines: decodeLines(Number(part[3]), published.toString('utf8', at, at + size)),
        };
        at += size;
        break;
      }
      case 'x':
        yield { type: 'ended-stored', runId };
        break;
      default:
        throw new Error(`live message of the unknown type '${part[0]}'`);
    }
  }
}
