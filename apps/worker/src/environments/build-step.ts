// Contract 7, "Dependencies": one program of a build. It runs under a keeper, like the programs of apps, with limits of time and memory.
import { AppProcess, type ProcessEnd } from '../runtimes/app-process.ts';
import { DEFAULT_PATH } from '../runtimes/clean-env.ts';
import { keeperInterpreter } from '../runtimes/interpreter.ts';
import { type Command, keptBy } from '../runtimes/keeper.ts';
import { BuildFailed } from './build-failed.ts';

export interface BuildStep {
  /** The name in the version's log. */
  readonly name: string;
  readonly command: Command;
  /** The working directory. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface BuildLimits {
  /** Time limit of all steps of a build together, ms. */
  readonly timeoutMs: number;
  /** Memory limit of a step and its child processes together. */
  readonly memoryBytes: number;
}

/** Receives lines of the version's log. */
export type BuildLog = (lines: readonly string[]) => void;

const MIB = 2 ** 20;

/**
 * Runs a step to its end.
 *
 * @param expired fires at the time limit of the build
 * @param stopped fires when nobody needs the build
 * @throws BuildFailed; the reason of `stopped`
 */
export async function runStep(
  step: BuildStep,
  limits: BuildLimits,
  { expired, stopped }: { readonly expired: AbortSignal; readonly stopped: AbortSignal },
  log: BuildLog,
): Promise<void> {
  stopped.throwIfAborted();
  const { name, folder, env } = step;
  const keeper = await keeperInterpreter(env.PATH ?? DEFAULT_PATH);
  const reason = new BuildReason();
  let unstartable: string | undefined;
  const ended = Promise.withResolvers<ProcessEnd>();
  const running = new AppProcess(keptBy(keeper, limits.memoryBytes, step.command), folder, env, {
    lines: (stream, texts) => {
      if (stream === 'stderr') reason.add(texts);
      log(texts);
    },
    unstartable: (why) => {
      unstartable = why;
    },
    kept: () => {},
    exited: ended.resolve,
  });
  const kill = (): void => running.kill();
  const signal = AbortSignal.any([expired, stopped]);
  if (signal.aborted) kill();
  else signal.addEventListener('abort', kill);
  const { code, signal: by, overMemory } = await ended.promise;
  signal.removeEventListener('abort', kill);
  stopped.throwIfAborted();
  if (expired.aborted)
    throw new BuildFailed(`${name} exceeded the build's time limit of ${limits.timeoutMs / 1000} s (BUILD_TIMEOUT_S)`);
  if (overMemory !== undefined)
    throw new BuildFailed(
      `${name} exceeded the build's memory limit of ${Math.floor(limits.memoryBytes / MIB)} MiB (BUILD_MEMORY_BYTES)`,
    );
  if (unstartable !== undefined) throw new BuildFailed(`${name} cannot be started: ${unstartable}`);
  if (code === 0) return;
  const how = code === null ? `was ended by ${by}` : `ended with exit code ${code}`;
  throw new BuildFailed(reason.text === '' ? `${name} ${how}` : `${name} ${how}: ${reason.text}`);
}

/** Finds the line of a tool's output that explains a failure: the first error of npm, else the last line. */
class BuildReason {
  #npm = '';
  #last = '';

  get text(): string {
    return (this.#npm || this.#last).trim();
  }

  add(texts: readonly string[]): void {
    // The first line of npm has only the code of the error.
    if (this.#npm === '') this.#npm = texts.find((text) => /^npm error (?!code )\S/.test(text)) ?? '';
    this.#last = texts.findLast((text) => text.trim() !== '') ?? this.#last;
  }
}
