// Contract 5: ends attempts, by end.lua.
import type { Outcome, RunId } from '@inference-proxy/contracts';
import { outcomeKind } from '../runs/codec.ts';
import { codeIn, Kinds, listIn, numberIn, type Script, type ScriptArgument } from '../scripts.ts';
import type { Again } from './append.ts';

export interface End {
  readonly runId: RunId;
  readonly token: string;
  readonly outcome: Omit<Outcome, 'endedAt'>;
  /** Puts the run back into the queue once, if the run has no item, no head and no cancel request (`retry_on_crash`). */
  readonly retry?: boolean;
  /** The app's version that executed the run. Set only if the take named another version. */
  readonly version?: string;
}

/** `refused`: the run ended as `output_too_large`, because its outcome does not fit into the project's share (Contract 9). */
export type EndAnswer =
  | { readonly state: 'ended' | 'refused' | 'requeued' | 'lost' }
  | { readonly state: 'behind'; readonly last: number };

export interface EndArguments {
  readonly handoverMs: number;
  readonly ends: readonly End[];
}

export interface EndReply {
  readonly answer: EndAnswer | Again;
  readonly webhookDue: boolean;
}

export const endScript: Script<EndArguments, EndReply[]> = {
  name: 'end',
  encode: ({ handoverMs, ends }) => {
    const kinds = new Kinds();
    const runs: ScriptArgument[] = [];
    for (const { runId, token, outcome, retry, version } of ends) {
      const kind = kinds.number([...outcomeKind(outcome), retry ? 1 : 0, version ?? '']);
      runs.push(kind, runId, token, outcome.runTimeMs, outcome.result ?? '');
    }
    return [handoverMs, kinds.count, ...kinds.values, ...runs];
  },
  decode: (reply) => {
    const values = listIn(reply);
    const ends: EndReply[] = [];
    // Three values for each run.
    for (let n = 0; n < values.length; n += 3) {
      const state = codeIn(values[n], ['ended', 'refused', 'requeued', 'behind', 'lost', 'again']);
      const answer: EndReply['answer'] = state === 'behind' ? { state, last: numberIn(values[n + 1]) } : { state };
      ends.push({ answer, webhookDue: values[n + 2] === 1 });
    }
    return ends;
  },
};
