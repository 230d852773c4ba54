// Contract 1, "Asynchronous calls": lets a run continue without a reader after a 202 answer, by detach.lua.
import type { RunId } from '@inference-proxy/contracts';
import type { Script } from '../scripts.ts';

export const detachScript: Script<readonly RunId[], void> = {
  name: 'detach',
  encode: (runIds) => runIds,
  decode: () => undefined,
};
