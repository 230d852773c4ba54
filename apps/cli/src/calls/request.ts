// Contract 1, "Options of a call": builds the request of `call` and `stream` from their arguments and options.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import { Failure } from '../service/failures.ts';
import type { RequestOptions } from '../service/service.ts';
import type { Settings } from '../settings.ts';

export interface CallOptions {
  readonly webhook?: string;
  readonly idempotencyKey?: string;
  readonly onDisconnect?: string;
}

/** Adds the options that a call and a streamed call share. */
export const withCallOptions = (command: Command): Command =>
  command
    .argument('<app/function>', 'the function, such as hello/greet')
    .argument('[parameters]', 'a JSON object; @file reads a file, - reads standard input', '{}')
    .option('--webhook <url>', 'send the answer to this URL; INFERENCE_PROXY_WEBHOOK_SECRET signs it')
    .option('--idempotency-key <key>', 'return the existing run of a repeated request')
    .option('--on-disconnect <fate>', 'fate of the run without a reader: cancel, continue or seconds');

/** Returns the path of a function below the project. @throws Failure if the name has another form */
export function functionPath(name: string): string {
  const parts = name.split('/');
  if (parts.length !== 2 || parts.includes(''))
    throw new Failure('usage', `The function "${name}" is wrong: expected <app>/<function>, such as hello/greet`);
  return `/${parts.map(encodeURIComponent).join('/')}`;
}

/** Returns the bytes of the parameters. The gateway checks them. */
export async function parametersOf(text: string, { cwd }: Settings): Promise<Buffer> {
  if (text === '-') return buffer(process.stdin);
  if (!text.startsWith('@')) return Buffer.from(text);
  try {
    return readFileSync(resolve(cwd, text.slice(1)));
  } catch (error) {
    throw new Failure('usage', `The parameters cannot be read: ${(error as Error).message}`);
  }
}

/** Returns query, headers and body of a call. */
export async function callRequest(
  parameters: string,
  options: CallOptions,
  settings: Settings,
): Promise<RequestOptions> {
  const { webhook, idempotencyKey, onDisconnect } = options;
  return {
    query: { webhookEndpoint: webhook, onDisconnect },
    headers: {
      'content-type': 'application/json',
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
      ...(webhook !== undefined &&
        settings.webhookSecret !== undefined && { 'x-webhook-secret': settings.webhookSecret }),
    },
    body: await parametersOf(parameters, settings),
  };
}
