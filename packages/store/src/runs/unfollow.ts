// Contract 1, "Disconnects": reports to the store that runs have no reader at this gateway any more, by unfollow.lua.
import type { RunId } from '@inference-proxy/contracts';
import { listIn, type Script, textIn } from '../scripts.ts';

export interface UnfollowArguments {
  readonly gatewayId: string;
  /** Rising per gateway. */
  readonly number: number;
  readonly handoverMs: number;
  readonly runIds: readonly RunId[];
}

/** Returns the runs that ended here and have a due webhook. */
export const unfollowScript: Script<UnfollowArguments, RunId[]> = {
  name: 'unfollow',
  encode: ({ gatewayId, number, handoverMs, runIds }) => [gatewayId, number, handoverMs, ...runIds],
  decode: (reply) => listIn(reply).map(textIn),
};
