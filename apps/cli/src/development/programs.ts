// The programs of this repository that the commands `token`, `check` and `dev` start.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '@inference-proxy/supervisor/folders';
import { Failure } from '../service/failures.ts';

/** Returns the repository's folder. @throws Failure outside the repository */
export function repository(): string {
  try {
    return projectRoot();
  } catch {
    throw new Failure('failed', 'This command needs the repository of inference-proxy: run it there with npx');
  }
}

/** Returns the path of a built program of a service. @throws Failure if it is not built */
export function programOf(app: string, name: string): string {
  const path = join(repository(), 'apps', app, 'dist', 'bundle', `${name}.js`);
  if (!existsSync(path)) throw new Failure('failed', `The program ${name} is not built: run npm run build first`);
  return path;
}

/** The end of a program. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
}

/** Runs a program and collects its output. Its standard error is the standard error of this process. */
export function output(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ['inherit', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? 1, stdout: Buffer.concat(chunks).toString() }));
  });
}
