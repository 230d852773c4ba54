// One stack for all test files that need no settings of their own and break no part. Each file has projects of its own in the stack.
// The first file of a run of jest starts the process of the stack. The process ends with the run.
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { projectRoot } from '@inference-proxy/supervisor';
import { Caller } from '../client/caller.ts';
import { until } from '../client/until.ts';
import { deniedCommands } from './redis-denials.ts';
import type { TestStack } from './test-stack.ts';

const APPS = join(projectRoot(), 'test', 'apps', 'demo');

/** What the process of the stack reports when the stack is ready. */
type Report = Pick<TestStack, 'port' | 'jwtSecret' | 'redisUrl' | 'appsDir' | 'marksDir'>;

/** A project of a test file in the shared stack. */
export interface SharedStack extends Pick<TestStack, 'port' | 'jwtSecret' | 'marksDir' | 'logs'> {
  /** A caller with a token for the project. */
  readonly caller: Caller;
  /** Removes the apps of the project. @throws Error if Redis has denied a command of a service */
  leave(): Promise<void>;
}

/**
 * Deploys apps into a project of the shared stack. Resolves when the apps are announced.
 *
 * @param project a name that no other test file uses
 * @param apps names of apps in `test/apps/demo`, or paths of apps
 * @param state the state to wait for, by the name of an app; default `ready`
 */
export async function joinSharedStack(
  project: string,
  apps: readonly string[],
  state: Readonly<Record<string, string>> = {},
): Promise<SharedStack> {
  const { folder, report } = await sharedStack();
  const logs = readerOf(join(folder, 'log'));
  const deployed = join(report.appsDir, project);
  // The worker ignores folders whose names begin with a dot, so it never finds half an app.
  const made = await mkdtemp(join(report.appsDir, '.made-'));
  for (const app of apps)
    await cp(resolve(APPS, app), join(made, basename(app)), {
      recursive: true,
      filter: (path) => !path.endsWith('__pycache__'),
    });
  await rename(made, deployed);
  const marksDir = join(report.marksDir, project);
  await mkdir(marksDir);
  const caller = new Caller(report.port, report.jwtSecret, project);
  await Promise.all(apps.map((app) => caller.ready(basename(app), state[basename(app)])));
  return {
    port: report.port,
    jwtSecret: report.jwtSecret,
    marksDir,
    logs,
    caller,
    async leave() {
      await rm(deployed, { recursive: true, force: true });
      const denied = await deniedCommands(report.redisUrl);
      if (denied.length > 0)
        throw new Error(
          `Redis has denied commands of the services. Correct deploy/redis/users.acl:\n${denied.join('\n')}`,
        );
    },
  };
}

/** Returns the report of the stack of this run of jest. The first caller starts the stack. */
async function sharedStack(): Promise<{ folder: string; report: Report }> {
  const { SHARED_STACK: folder = '', SHARED_STACK_OWNER: owner = '' } = process.env;
  if (makeFolder(folder)) {
    const output = openSync(join(folder, 'log'), 'a');
    const program = join(import.meta.dirname, 'shared-stack-process.ts');
    spawn(process.execPath, ['--conditions=source', program, folder, owner], {
      detached: true,
      stdio: ['ignore', output, output],
    }).unref();
    closeSync(output);
  }
  const said = (name: string): Promise<string | undefined> =>
    readFile(join(folder, name), 'utf8').catch(() => undefined);
  const text = await until(async () => {
    const failed = await said('failed');
    if (failed !== undefined) throw new Error(failed);
    return said('ready');
  });
  return { folder, report: JSON.parse(text) as Report };
}

/** Returns whether this call has created the folder. */
function makeFolder(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Returns a function that returns the text of a growing file, from its present end on. */
function readerOf(path: string): () => string {
  const file = openSync(path, 'r');
  const chunk = Buffer.alloc(64 * 1024);
  const decoder = new TextDecoder();
  let text = '';
  const read = (): string => {
    for (let size = readSync(file, chunk); size > 0; size = readSync(file, chunk))
      text += decoder.decode(chunk.subarray(0, size), { stream: true });
    return text;
  };
  read();
  text = '';
  return read;
}
