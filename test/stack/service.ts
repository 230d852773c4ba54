// One Node process of the stack: started, known to be ready by its own word, stopped by SIGTERM and, past its time, by SIGKILL.
import { type ChildProcess, spawn } from 'node:child_process';
import { guard, type Release } from './guard.ts';
import type { Output } from './output.ts';
import { signal as send } from './processes.ts';

/** A process that runs and is ready. */
export interface Running {
  readonly pid: number;
  /** Where it listens, if it said so. */
  readonly port?: number;
  /** Settles when it has ended, asked or not, with the reason in words. */
  readonly exited: Promise<string>;
  /** Asks it to end and waits until it has. */
  stop(): Promise<void>;
}

export interface ServiceSpec {
  readonly name: string;
  /** Which service it is one of; its name says more where there are several. */
  readonly service: string;
  /** Its own deadlines add up to less; when it is still there after this, it hangs. */
  readonly stopLimitMs: number;
  /** The program, such as `apps/gateway/dist/bundle/main.js`. */
  readonly entry: string;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** A program that knows nothing of us says in this line that it is ready, and is ended for it when we are killed; the others send `{ready: true}`. */
  readonly readyLine?: RegExp;
}

function whenExited(child: ChildProcess): Promise<string> {
  return new Promise((settle) => {
    child.once('error', (error) => settle(error.message));
    // Not 'close': that waits for whoever else holds its pipes.
    child.once('exit', (code, name) => settle(name === null ? `exit code ${code}` : `signal ${name}`));
  });
}

/** What a service says when it is ready. */
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
 * @param signal gives the start up: the service is stopped again
 * @param started told its process id as soon as there is one
 * @throws Error with the reason where it ended before it was ready
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
    // Its own group: a Ctrl-C in the terminal is ours alone, and we stop the parts one after the other.
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
