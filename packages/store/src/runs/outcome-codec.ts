// The outcome as the `end` script stores, publishes and returns it.
import type { EndState, ErrorFields, Outcome } from '@inference-proxy/contracts';
import type { ScriptArgument } from '../scripts.ts';

const NOTHING = Buffer.alloc(0);

/** The seven arguments of `end` that tell an outcome. */
export function outcomeArguments(outcome: Omit<Outcome, 'endedAt'>): ScriptArgument[] {
  return [
    outcome.state,
    outcome.items,
    outcome.streamed ? 1 : 0,
    outcome.runTimeMs,
    outcome.statusCode ?? '',
    outcome.result ?? NOTHING,
    outcome.error ? JSON.stringify(outcome.error) : '',
  ];
}

/** An outcome from its stored parts. `result` and `error` are empty for what there is not. */
export function outcomeOf(parts: {
  state: string;
  items: number;
  streamed: boolean;
  runTimeMs: string;
  endedAt: number;
  statusCode: number;
  result: Buffer;
  error: Buffer;
}): Outcome {
  return {
    state: parts.state as EndState,
    items: parts.items,
    streamed: parts.streamed,
    runTimeMs: parts.runTimeMs,
    endedAt: parts.endedAt,
    ...(parts.result.length > 0 && { result: parts.result }),
    ...(parts.error.length > 0 && { error: JSON.parse(parts.error.toString()) as ErrorFields }),
    ...(parts.statusCode > 0 && { statusCode: parts.statusCode }),
  };
}
