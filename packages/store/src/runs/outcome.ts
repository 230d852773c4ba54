// Contract 2: encodes and decodes outcomes as the scripts store, publish and return them.
import { decodeHead, type EndState, type ErrorFields, encodeHead, type Outcome } from '@inference-proxy/contracts';

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
