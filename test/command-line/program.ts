// Runs the command line as a user does: in a pipe, or in a pseudo-terminal.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';
import { projectRoot } from '@inference-proxy/supervisor';
import { until } from '../client/until.ts';

/** The built program, because some packages have a `source` condition that Node cannot run. */
export const PROGRAM = join(projectRoot(), 'node_modules', '.bin', 'inference-proxy');

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The text of standard input. */
  readonly input?: string;
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of a program without profiles and settings of the machine. */
const environment = (env: ProgramOptions['env']): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: '/nonexistent',
  NODE_NO_WARNINGS: '1',
  ...env,
});

const codeOf = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? -1));
  });

/** Runs the program with pipes until it ends. */
export async function inPipe(args: readonly string[], { env, cwd, input = '' }: ProgramOptions = {}): Promise<Ended> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: environment(env), cwd });
  // The program may end before it reads its input.
  child.stdin.on('error', () => {}).end(input);
  const [code, stdout, stderr] = await Promise.all([codeOf(child), text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

/** A pseudo-terminal that runs the program. */
export class Terminal {
  readonly #child: ChildProcess;
  /** The exit code of the program. */
  readonly ended: Promise<number>;
  #shown = '';

  constructor(args: readonly string[], { env, cwd }: ProgramOptions = {}) {
    const script = join(import.meta.dirname, 'terminal.py');
    this.#child = spawn('python3', [script, process.execPath, PROGRAM, ...args], {
      env: environment({ TERM: 'xterm', ...env }),
      cwd,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      this.#shown += part;
    });
    this.ended = codeOf(this.#child);
  }

  /** Everything that the terminal has shown, without control sequences. */
  get shown(): string {
    return stripVTControlCharacters(this.#shown);
  }

  /** Resolves when the terminal has shown a text. @throws Error if the program ends before */
  async shows(wanted: string): Promise<void> {
    await Promise.race([
      until(() => this.shown.includes(wanted)),
      this.ended.then((code) => {
        if (!this.shown.includes(wanted)) throw new Error(`ended with ${code} without "${wanted}": ${this.shown}`);
      }),
    ]);
  }

  /** Types keys. `\r` is Enter, `\x03` is Ctrl-C. */
  type(keys: string): void {
    this.#child.stdin?.write(keys);
  }

  /** Ends the program, if a test failed before its end. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
