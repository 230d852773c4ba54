// Contract 2: encodes and decodes outcomes as lua/end stores, publishes and returns them.
import { decodeHead, type EndState, type ErrorFields, encodeHead, type Outcome } from '@inference-proxy/contracts';

/** Returns the arguments of lua/end that most outcomes of a tick share: all except run time and result. */
export function outcomeKind(outcome: Omit<Outcome, 'endedAt'>): (string | number)[] {
  return [
    outcome.state,
    outcome.items,
    outcome.streamed ? 1 : 0,
    outcome.statusCode ?? '',
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
