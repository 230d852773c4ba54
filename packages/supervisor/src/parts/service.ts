// One Node process of the stack: its start, its ready message, and its stop by SIGTERM, or by SIGKILL after a time limit.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Output } from '../output.ts';
import { guard, type Release } from './guard.ts';
import { signal as send } from './processes.ts';

/** A process that is ready. */
export interface Running {
  readonly pid: number;
  /** Its port, if it reported a port. */
  readonly port?: number;
  /** Settles with the reason when the process has ended, also without a stop. */
  readonly exited: Promise<string>;
  /** Stops the process and waits until it has ended. */
  stop(): Promise<void>;
}

export interface ServiceSpec {
  readonly name: string;
  /** The service of this process. The name has a number if there are several processes. */
  readonly service: string;
  /** Longer than all deadlines of the service together, so a process that exceeds it hangs. */
  readonly stopLimitMs: number;
  /** The program, such as `apps/gateway/dist/bundle/main.js`. */
  readonly entry: string;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Set for a program without the `{ready: true}` message: its output is ready with this line, and a guard ends it if this process is killed. */
  readonly readyLine?: RegExp;
}

function whenExited(child: ChildProcess): Promise<string> {
  return new Promise((settle) => {
    child.once('error', (error) => settle(error.message));
    // Not 'close', which also waits for other holders of the pipes.
    child.once('exit', (code, name) => settle(name === null ? `exit code ${code}` : `signal ${name}`));
  });
}

/** The message of a service that is ready. */
interface ReadyWord {
  readonly ready: true;
  readonly port?: number;
}

const isReadyWord = (message: unknown): message is ReadyWord =>
  typeof message === 'object' && message !== null && 'ready' in message;

function whenReady(child: ChildProcess, readyLine: RegExp | undefined): Promise<ReadyWord> {
  return new Promise((resolve) => {
    if (readyLine) {
      child.stdout?.on('data', (chunk) => {
        if (readyLine.test(String(chunk))) resolve({ ready: true });
      });
    } else {
      child.on('message', (message) => {
        if (isReadyWord(message)) resolve(message);
      });
    }
  });
}

/**
 * Starts a service and resolves when it is ready.
 *
 * @param signal aborts the start and stops the service
 * @param started called with the pid after the spawn
 * @throws Error with the reason if the process ended before it was ready
 */
export async function startService(
  spec: ServiceSpec,
  output: Output,
  signal: AbortSignal,
  started: (pid: number) => void,
): Promise<Running> {
  const child = spawn(process.execPath, ['--enable-source-maps', spec.entry], {
    cwd: spec.cwd,
    env: spec.env,
    stdio: ['ignore', 'pipe', 'pipe', ...(spec.readyLine ? [] : (['ipc'] as const))],
    // A separate process group, so that a Ctrl-C reaches the supervisor only, which stops the parts in order.
    detached: true,
  });
  for (const stream of [child.stdout, child.stderr]) if (stream) void output.follow(spec.name, stream).catch(() => {});
  const exited = whenExited(child);
  const { pid } = child;
  if (pid === undefined) throw new Error(await exited);
  started(pid);
  const release: Release = spec.readyLine ? guard(pid, 0) : () => {};
  void exited.then(release);
  const stop = async (): Promise<void> => {
    send(pid, 'SIGTERM');
    const timer = setTimeout(() => send(-pid, 'SIGKILL'), spec.stopLimitMs);
    await exited;
    clearTimeout(timer);
  };
  const givenUp = new Promise<'given up'>((resolve) => {
    if (signal.aborted) resolve('given up');
    signal.addEventListener('abort', () => resolve('given up'), { once: true });
  });
  const first = await Promise.race([whenReady(child, spec.readyLine), givenUp, exited]);
  if (typeof first === 'object') return { pid, exited, stop, ...(first.port !== undefined && { port: first.port }) };
  if (first === 'given up') await stop();
  throw new Error(first);
}
