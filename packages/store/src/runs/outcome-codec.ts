// The outcome as the `end` script stores, publishes and returns it.
import { decodeHead, type EndState, type ErrorFields, encodeHead, type Outcome } from '@inference-proxy/contracts';

/** The arguments of `end` that tell an outcome and are the same for most runs of a turn: all but run time and result. */
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

/** An outcome from its stored parts. `result`, `error` and `head` are empty for what there is not. */
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
    // Of a stream that broke off the record has the head; the store itself may have ended it, and says nothing of heads.
    ...(parts.head.length > 0 && parts.state === 'succeeded' && { head: decodeHead(parts.head.toString()) }),
  };
}
