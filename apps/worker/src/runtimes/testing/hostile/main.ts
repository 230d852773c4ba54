// A hostile app for the tests of the keeper: processes that leave their group, allocate memory, and attack other processes.
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const MIB = 2 ** 20;

export const pid = () => process.pid;

const DAEMON = "process.on('SIGTERM', () => {}); console.log(process.pid); setTimeout(() => {}, 600_000)";

/** Leaves an orphan in a separate session, with its own environment. The orphan ignores SIGTERM and holds the pipes. */
export function leaves_a_daemon() {
  const script = `
const { spawn } = require('node:child_process');
const child = spawn(process.execPath, ['-e', ${JSON.stringify(DAEMON)}], { detached: true, env: {}, stdio: ['ignore', 'pipe', 'inherit'] });
child.stdout.once('data', (data) => { process.stdout.write(data, () => process.exit()); });`;
  return Number(execFileSync(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] }));
}

export async function* leaves_a_daemon_and_exits() {
  yield leaves_a_daemon();
  await pause(100);
  process.exit(3);
}

export async function* holds({ mebibytes, seconds }: { mebibytes: number; seconds: number }) {
  const held = Buffer.alloc(mebibytes * MIB, 'x');
  yield held.length;
  await pause(seconds * 1000);
  yield held.length > 0 ? 'whole' : '';
}

/** Allocates memory in a child. The child's memory counts for the replica. */
export async function* holds_in_a_child({ mebibytes }: { mebibytes: number }) {
  const code = `const held = Buffer.alloc(${mebibytes * MIB}, 'x'); setTimeout(() => held.length, 60_000)`;
  yield spawn(process.execPath, ['-e', code], { stdio: 'ignore' }).pid;
  await pause(60_000);
}

/** Returns the ancestors of the function's process: the keeper, and the worker above it. */
export function ancestors() {
  const parentOf = (id: number) => Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1]);
  const keeper = parentOf(process.pid);
  return [keeper, parentOf(keeper)];
}

const codeOf = (error: unknown) => (error as { code: string }).code;

export function signals({ target }: { target: number }) {
  try {
    process.kill(target, 0);
    return 'allowed';
  } catch (error) {
    return codeOf(error);
  }
}

export function reads({ path }: { path: string }) {
  try {
    const fd = openSync(path, 'r');
    const read = readSync(fd, Buffer.alloc(64 * 1024));
    closeSync(fd);
    return read > 0;
  } catch (error) {
    return codeOf(error);
  }
}

export function limits() {
  const text = readFileSync('/proc/self/limits', 'utf8');
  const soft = (name: string) => Number(new RegExp(`^${name} +(\\d+)`, 'm').exec(text)?.[1]);
  return { files: soft('Max open files'), core: soft('Max core file size') };
}

export const environment = () => process.env;
export const oom_score_adj = () => Number(readFileSync('/proc/self/oom_score_adj', 'utf8'));
