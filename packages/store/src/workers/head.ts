// Contract 1, "Custom runtimes": writes the heads of running runs' answers, by head.lua.
import { type AnswerHead, encodeHead, type RunId } from '@inference-proxy/contracts';
import { codeIn, listIn, type Script, type ScriptArgument } from '../scripts.ts';

export interface Head {
  readonly runId: RunId;
  readonly token: string;
  readonly head: AnswerHead;
}

/** The answer of `head`. The words mean the same as in `AppendAnswer`. */
export type HeadAnswer = 'ok' | 'lost' | 'full';

/** A head as it is stored. @throws the errors of `encodeHead` */
export const encodedHead = ({ runId, token, head }: Head): EncodedHead => ({ runId, token, text: encodeHead(head) });

export interface EncodedHead {
  readonly runId: RunId;
  readonly token: string;
  readonly text: string;
}

export const headScript: Script<readonly EncodedHead[], (HeadAnswer | 'again')[]> = {
  name: 'head',
  encode: (heads) => heads.flatMap(({ runId, token, text }): ScriptArgument[] => [runId, token, text]),
  decode: (reply) => listIn(reply).map((code) => codeIn(code, ['ok', 'lost', 'full', 'again'])),
};
