// Contract 4, "Isolation": wakes due probes and frees slots of dead dispatchers, by host-look.lua.
import type { DueDelivery } from '@inference-proxy/contracts';
import { listIn, numberIn, type Script, textIn } from '../scripts.ts';
import { type HostLimits, limitArguments, type Woken, wokenIn } from './hosts.ts';

export interface Looked {
  readonly woken: readonly Woken[];
  /** Deliveries of expired slots. */
  readonly lapsed: readonly DueDelivery[];
}

/** `most`: maximum number of lines. */
export const hostLookScript: Script<{ limits: HostLimits; most: number }, Looked> = {
  name: 'host-look',
  encode: ({ limits, most }) => [...limitArguments(limits), most],
  decode: (reply) => {
    const [woken, lapsed] = listIn(reply);
    return {
      woken: wokenIn(woken),
      lapsed: listIn(lapsed).map((values) => {
        const [project, runId, attempt] = listIn(values);
        return { project: textIn(project), runId: textIn(runId), attempt: numberIn(attempt) };
      }),
    };
  },
};
