// Contract 5, "Deliveries": makes deliveries due at once, by delivery-redeliver.lua.
import type { RunId } from '@inference-proxy/contracts';
import { listIn, numberIn, type Script } from '../scripts.ts';

export interface RedeliverArguments {
  readonly handoverMs: number;
  /** A repeated request gets the same answers. */
  readonly requestId: string;
  readonly runIds: readonly RunId[];
}

/** Returns per run the number of the attempt that is due; `under-way`: an attempt is open or asked for; `unknown`: no delivery. */
export const redeliverScript: Script<RedeliverArguments, (number | 'under-way' | 'unknown')[]> = {
  name: 'delivery-redeliver',
  encode: ({ handoverMs, requestId, runIds }) => [handoverMs, requestId, ...runIds],
  decode: (reply) =>
    listIn(reply).map((value) => {
      const attempt = numberIn(value);
      if (attempt === 0) return 'unknown';
      return attempt < 0 ? 'under-way' : attempt;
    }),
};
