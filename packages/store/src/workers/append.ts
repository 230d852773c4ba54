// Contract 3: appends items to running runs, by append.lua.
import type { ItemBatch, RunId } from '@inference-proxy/contracts';
import { codeIn, listIn, numberIn, type Script, type ScriptArgument, type ScriptReply } from '../scripts.ts';

export interface Append {
  readonly runId: RunId;
  readonly token: string;
  readonly batch: ItemBatch;
}

/** `position`: number of the last item that a reader has taken, as far as known (0 at first). */
export type AppendAnswer =
  | { readonly state: 'ok'; readonly position: number; readonly cancel: boolean }
  /** Items after `last` are missing. The worker must resend them. */
  | { readonly state: 'behind'; readonly last: number }
  /** Another attempt holds the run, or the run has ended. */
  | { readonly state: 'lost' }
  /** The items exceed the project's share (Contract 9). Nothing was written. */
  | { readonly state: 'full' };

/** A gateway makes room now, so the same write may fit soon. */
export interface Again {
  readonly state: 'again';
}

export interface AppendArguments {
  /** Bytes of a plain stream that are kept. */
  readonly windowBytes: number;
  readonly appends: readonly Append[];
  /** Returns the last item that readers have taken, as far as known; undefined if all items are kept. */
  readonly positionOf: (append: Append) => number | undefined;
}

export const appendScript: Script<AppendArguments, (AppendAnswer | Again)[]> = {
  name: 'append',
  encode: ({ windowBytes, appends, positionOf }) => {
    const args: ScriptArgument[] = [windowBytes];
    for (const append of appends) {
      const { runId, token, batch } = append;
      args.push(runId, token, batch.first, batch.count, batch.kind, batch.blob, positionOf(append) ?? '-');
    }
    return args;
  },
  decode: (reply) => listIn(reply).map(answerIn),
};

function answerIn(reply: ScriptReply): AppendAnswer | Again {
  const [code, last, position, cancel] = listIn(reply);
  const state = codeIn(code, ['ok', 'behind', 'lost', 'full', 'again']);
  if (state === 'ok') return { state, position: numberIn(position), cancel: cancel === 1 };
  return state === 'behind' ? { state, last: numberIn(last) } : { state };
}
