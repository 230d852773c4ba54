// Starts a stack with a short webhook schedule for these tests, and reads the logs of deliveries (Contract 4).
import { join } from 'node:path';
import { projectRoot } from '@inference-proxy/supervisor';
import { Caller, type CallOptions } from '../../client/caller.ts';
import { until } from '../../client/until.ts';
import { startTestStack, type TestStack, type TestStackOptions } from '../../stack/test-stack.ts';

export interface Attempt {
  readonly attempt: number;
  readonly at: string;
  readonly duration_ms: number;
  readonly status?: number;
  readonly error?: string;
  readonly location?: string;
  readonly answer?: string;
  readonly address?: string;
  readonly next_attempt_at?: string;
}

export interface LoggedDelivery {
  readonly delivery_id: string;
  readonly status: 'waiting' | 'pending' | 'delivered' | 'failed';
  readonly attempts: number;
  readonly next_attempt_at?: string;
  readonly parked?: { readonly reason: string };
  readonly attempt_under_way?: boolean;
  readonly log: readonly Attempt[];
}

/** The schedule is short. The timeouts are long, so that a busy machine causes no timeout. */
const IMPATIENT = {
  WEBHOOK_SCHEDULE: '0,0.05,0.05,0.05,0.05,0.05',
  WEBHOOK_JITTER: '0',
  WEBHOOK_CONNECT_TIMEOUT_S: '60',
  WEBHOOK_TIMEOUT_S: '60',
  WEBHOOK_RECORD_S: '60',
};

/** Starts a stack with the hostile apps. Resolves when the apps are ready. */
export async function hostileStack(
  env: Record<string, string> = {},
  options: Pick<TestStackOptions, 'denials'> = {},
): Promise<{ stack: TestStack; caller: Caller }> {
  const stack = await startTestStack({
    apps: join(projectRoot(), 'test', 'hostile', 'webhooks', 'apps'),
    env: { ...IMPATIENT, ...env },
    ...options,
  });
  try {
    const caller = new Caller(stack.port, stack.jwtSecret);
    await Promise.all(['hooks', 'narrow', 'hasty'].map((app) => caller.ready(app)));
    return { stack, caller };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

/** Returns the options of a call whose envelope is sent to `url`. */
export const to = (url: string, secret?: string | Buffer, more = ''): CallOptions => ({
  query: `?webhookEndpoint=${encodeURIComponent(url)}${more}`,
  ...(secret !== undefined && { headers: { 'x-webhook-secret': Buffer.from(secret).toString('latin1') } }),
});

export async function deliveryOf(caller: Caller, runId: string): Promise<LoggedDelivery | undefined> {
  const answer = await caller.request(`/v4/${caller.project}/runs/${runId}/deliveries`, { method: 'GET' });
  // Redis is not back yet. The caller of this function asks again.
  if (answer.status === 503) return undefined;
  if (answer.status !== 200)
    throw new Error(`the log of the deliveries of run ${runId} answered ${answer.status}: ${answer.text}`);
  return (JSON.parse(answer.text) as { deliveries: LoggedDelivery[] }).deliveries[0];
}

/** Resolves with the delivery when `holds` returns true. */
export const deliveryThat = (
  caller: Caller,
  runId: string,
  holds: (delivery: LoggedDelivery) => boolean,
): Promise<LoggedDelivery> =>
  until(async () => {
    const delivery = await deliveryOf(caller, runId);
    return delivery && holds(delivery) && delivery;
  });

/** Resolves with the delivery when the delivery has ended. */
export const settled = (caller: Caller, runId: string): Promise<LoggedDelivery> =>
  deliveryThat(caller, runId, ({ status }) => status === 'delivered' || status === 'failed');
