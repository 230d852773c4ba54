// Parses the messages that scripts publish to a gateway: one header line, and as many bytes as the header's lengths name.
import {
  type AnswerHead,
  decodeHead,
  type ItemBatch,
  type ItemKind,
  type Outcome,
  type RunId,
} from '@inference-proxy/contracts';
import { outcomeOf } from './outcome.ts';
import { decodeLines, type LogLine } from './run-log.ts';

/** The code of `Following` in the store: `o` only the outcome, `i` items or an answer, `l` log lines, `f` rich. */
export type FollowerMode = 'o' | 'i' | 'l' | 'f';

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

const NEWLINE = 0x0a;

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
