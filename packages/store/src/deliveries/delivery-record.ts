// Contract 4: records the results of attempts, by delivery-record.lua.
import { listIn, numberIn, type Script, type ScriptArgument } from '../scripts.ts';
import type { DeliveryTask } from './delivery-begin.ts';

/** The step after an attempt. `delayMs` counts from the record. `refusals` counts 4xx answers that stop early, including this answer. */
export type NextStep =
  | { readonly state: 'delivered' | 'failed' }
  | { readonly state: 'pending'; readonly delayMs: number; readonly refusals: number };

/** The reason why a delivery is parked: its receiver fails, or its share of open attempts is used. */
export type ParkReason = 'circuit_open' | 'host_busy' | 'project_busy';

/** An attempt with its next step. `kept`: the envelope is stored before the first attempt is sent. */
export interface Recording {
  readonly task: Pick<DeliveryTask, 'runId' | 'attempt' | 'token'>;
  /** JSON of the attempt without its last brace; for `kept`, the envelope in its stored form. */
  readonly text: string | Buffer;
  readonly next:
    | NextStep
    | { readonly state: 'parked'; readonly delayMs: number; readonly reason: ParkReason }
    | { readonly state: 'kept' };
}

/** The answers by their numbers in delivery-record.lua. */
const ANSWERS = ['superseded', 'recorded', 'again'] as const;
export type RecordAnswer = (typeof ANSWERS)[number];

export const recordScript: Script<{ handoverMs: number; recordings: readonly Recording[] }, RecordAnswer[]> = {
  name: 'delivery-record',
  encode: ({ handoverMs, recordings }) => {
    const args: ScriptArgument[] = [handoverMs];
    for (const { task, text, next } of recordings) {
      args.push(task.runId, task.attempt, task.token, text, next.state, 'delayMs' in next ? next.delayMs : '');
      args.push(next.state === 'pending' ? next.refusals : next.state === 'parked' ? next.reason : '');
    }
    return args;
  },
  decode: (reply) =>
    listIn(reply).map((number) => {
      const answer = ANSWERS[numberIn(number)];
      if (answer === undefined) throw new TypeError(`delivery-record.lua returned the unknown answer ${number}`);
      return answer;
    }),
};
