// Contract 9: reserves room in the project's share for large results, by reserve.lua.
import type { RunId } from '@inference-proxy/contracts';
import { codeIn, listIn, type Script, type ScriptArgument } from '../scripts.ts';

/** `full`: the result does not fit. `again`: a gateway is making room. `lost`: another attempt holds the run. */
export type Reservation = 'ok' | 'full' | 'again' | 'lost';

export interface LargeResult {
  readonly runId: RunId;
  readonly token: string;
  readonly bytes: number;
}

export const reserveScript: Script<readonly LargeResult[], Reservation[]> = {
  name: 'reserve',
  encode: (results) => results.flatMap(({ runId, token, bytes }): ScriptArgument[] => [runId, token, bytes]),
  decode: (reply) => listIn(reply).map((code) => codeIn(code, ['ok', 'full', 'again', 'lost'])),
};
