// An S3-compatible server for tests: moto from PyPI, with checks of signatures. It stays in .data. Remove it to fetch a newer version.
// `S3_UNDER_TEST=http://<key>:<secret>@<host>:<port>/<bucket>` names another server.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { dataFolder, freePort } from '@inference-proxy/supervisor';

const run = promisify(execFile);
const INSTALL_MS = 300_000;
const START_MS = 60_000;
/** moto's extra `server` would also install a linter of CloudFormation, which takes three times as long. */
const PACKAGES = ['moto[s3]==5.*', 'flask', 'flask-cors'];

export interface S3Server {
  /** `http://host:port`. */
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** A bucket that exists. */
  readonly bucket: string;
  /** Returns the usual variables for a service. */
  env(prefix: string): Record<string, string>;
  stop(): Promise<void>;
}

/** Starts a server, or returns the reason why there is none. */
export async function startS3Server(cache = dataFolder()): Promise<S3Server | { missing: string }> {
  const given = process.env.S3_UNDER_TEST;
  if (given !== undefined) {
    const { protocol, host, username, password, pathname } = new URL(given);
    return served(`${protocol}//${host}`, username, password, pathname.slice(1), async () => {});
  }
  const program = join(cache, 'moto', 'bin', 'moto_server');
  const missing = await install(program, join(cache, 'moto'));
  if (missing !== undefined) return { missing };
  const port = await freePort();
  const server = spawn(program, ['-H', '127.0.0.1', '-p', String(port)], {
    stdio: 'ignore',
    // The first requests, which make the user and the bucket, have no signature.
    env: { PATH: process.env.PATH, INITIAL_NO_AUTH_ACTION_COUNT: 'inf' },
  });
  const endpoint = `http://127.0.0.1:${port}`;
  try {
    await answers(endpoint, server);
    const { accessKeyId, secretAccessKey } = await makeUser(endpoint);
    const bucket = 'bundles';
    await fetch(`${endpoint}/${bucket}`, { method: 'PUT' });
    await fetch(`${endpoint}/moto-api/reset-auth`, { method: 'POST', body: '0' });
    return served(endpoint, accessKeyId, secretAccessKey, bucket, () => end(server));
  } catch (error) {
    await end(server);
    throw error;
  }
}

const served = (
  endpoint: string,
  accessKeyId: string,
  secretAccessKey: string,
  bucket: string,
  stop: () => Promise<void>,
): S3Server => ({
  ...{ endpoint, accessKeyId, secretAccessKey, bucket, stop },
  env: (prefix) => ({
    BUNDLES_URL: `s3://${bucket}/${prefix}`,
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  }),
});

/** Installs the server, if it does not run yet. Returns why it cannot be installed. */
async function install(program: string, venv: string): Promise<string | undefined> {
  const works = () =>
    run(program, ['--help']).then(
      () => true,
      () => false,
    );
  if (await works()) return undefined;
  await mkdir(join(venv, '..'), { recursive: true });
  await rm(venv, { recursive: true, force: true });
  try {
    await run('python3', ['-m', 'venv', venv], { timeout: INSTALL_MS });
    const pip = ['-m', 'pip', 'install', '--quiet', '--no-compile', '--disable-pip-version-check', '--retries', '1'];
    await run(join(venv, 'bin', 'python'), [...pip, ...PACKAGES], { timeout: INSTALL_MS });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    await rm(venv, { recursive: true, force: true });
    return `moto could not be installed: ${(stderr || message).trim().split('\n').at(-1)}`;
  }
  return undefined;
}

async function answers(endpoint: string, { exitCode }: ChildProcess): Promise<void> {
  const giveUpAt = Date.now() + START_MS;
  while (!(await fetch(`${endpoint}/moto-api/data.json`).catch(() => undefined))?.ok) {
    if (exitCode !== null || Date.now() > giveUpAt) throw new Error('moto did not start');
    await sleep(100);
  }
}

/** Makes a user who may do everything, by the API of IAM. */
async function makeUser(endpoint: string): Promise<{ accessKeyId: string; secretAccessKey: string }> {
  const authorization =
    'AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=x';
  const iam = async (action: Record<string, string>): Promise<string> => {
    const body = new URLSearchParams({ Version: '2010-05-08', UserName: 'service', ...action });
    return (await fetch(endpoint, { method: 'POST', headers: { authorization }, body })).text();
  };
  await iam({ Action: 'CreateUser' });
  const key = await iam({ Action: 'CreateAccessKey' });
  const statement = { Effect: 'Allow', Action: '*', Resource: '*' };
  const policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
  await iam({ Action: 'PutUserPolicy', PolicyName: 'all', PolicyDocument: policy });
  const field = (name: string): string => new RegExp(`<${name}>(.*?)<`).exec(key)?.[1] ?? '';
  return { accessKeyId: field('AccessKeyId'), secretAccessKey: field('SecretAccessKey') };
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null) return;
  server.kill('SIGKILL');
  await once(server, 'exit');
}
