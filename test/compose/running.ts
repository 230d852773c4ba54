// What the tests of the compose stack share: its scale, its receiver, and waits for answers and deliveries.
import { RECEIVER_SECRET } from '@inference-proxy/supervisor';
import { expect } from '@jest/globals';
import { until } from '../client/until.ts';
import type { ComposeStack } from './compose-stack.ts';
import type { CallOutcome } from './load.ts';

/** The stack of the tests. It is set before the first test runs. */
export interface Here {
  stack: ComposeStack;
}

export const SCALE = { gateway: 3, worker: 4, dispatcher: 2 } as const;
export const ALL = ['proxy', 'gateway', 'worker', 'dispatcher', 'receiver'] as const;
/** The networks that Docker gives to compose. The receiver is in one of these networks. */
export const PRIVATE_NETWORKS = '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16';
export const HOOK = { url: 'http://receiver:8090/', secret: RECEIVER_SECRET };

export const DASHBOARD_TOKEN = 'a-token-of-the-dashboard';

/** Waits longer than `until`, because a dozen containers share two cores. */
export async function patiently<T>(look: () => Promise<T | false | undefined>, everyMs = 200): Promise<T> {
  for (let left = 3; ; left--) {
    try {
      return await until(look, everyMs);
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

export const say = (text: string): void => void process.stderr.write(`compose: ${text}\n`);

/** Waits for an answer, because a started container is not ready immediately. */
export const answers = (stack: ComposeStack) =>
  patiently(() =>
    stack.caller.call('streams/value', { value: 1 }).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );

/** Waits until the receiver has printed a verified delivery of each of these runs. Returns the output of the receiver. */
export async function delivered(stack: ComposeStack, runIds: readonly string[]): Promise<string> {
  const [receiver = ''] = await stack.containers('receiver');
  let printed = '';
  // The attempts of a killed dispatcher are repeated when their leases expire, which takes longer than `until` waits.
  await patiently(async () => {
    printed = await stack.docker(['logs', receiver]);
    return runIds.every((id) => new RegExp(`^verified [^\\n]*"run_id":"${id}"`, 'm').test(printed));
  }, 1000);
  expect(printed).not.toContain('refused');
  return printed;
}

/** Whether a call failed because the machine, which runs a dozen containers, stood still for two seconds. No ended container is the reason then. */
export const stoodStill = ({ is, message, beganAt, endedAt }: CallOutcome): boolean =>
  is === 'unavailable' && message?.startsWith('The run store ') === true && endedAt - beganAt >= 2000;
export const failures = (outcomes: readonly CallOutcome[]): readonly CallOutcome[] =>
  outcomes.filter(({ is }) => is !== 'ok');
export const saidOf = (failed: readonly CallOutcome[]): string =>
  failed
    .map(({ kind, is, message, beganAt, endedAt }) =>
      [kind, is, `${(endedAt - beganAt).toFixed(0)} ms`, message?.slice(0, 40)].join(' '),
    )
    .join('; ') || 'none';
export const runsOf = (outcomes: readonly CallOutcome[]): string[] => outcomes.flatMap(({ runId }) => runId ?? []);
