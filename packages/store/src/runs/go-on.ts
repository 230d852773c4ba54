// Contract 1, "Asynchronous calls": lets a run continue without a reader after a 202 answer, by go-on.lua.
import type { RunId } from '@inference-proxy/contracts';
import type { Script } from '../scripts.ts';

export const goOnScript: Script<readonly RunId[], void> = {
  name: 'go-on',
  encode: (runIds) => runIds,
  decode: () => undefined,
};
