// A stack in a terminal: its settings, its signals, its final message and its exit code.
import { helpText, readSettings, SettingsError } from '@inference-proxy/platform';
import { Output, type Sink } from './output.ts';
import { readScale, SCALE_USAGE, type Scale, WrongScale } from './scale.ts';
import { partNames } from './services.ts';
import { openStack, type StackOptions } from './stack.ts';
import { StackSettings } from './stack-settings.ts';

/** The terminal and npm both send a Ctrl-C, so two signals within this time count as one. */
const SAME_KEYPRESS_MS = 300;

/** A stack that is not the stack of `npm start`: tests and the command line. */
export interface TerminalOptions {
  /** Returns the processes instead of the services of `apps/`. */
  readonly services?: StackOptions['services'];
  /** Maximum time between two signals of one Ctrl-C. */
  readonly sameKeypressMs?: number;
  /** The words of the command line. */
  readonly args?: readonly string[];
  /** The environment that holds the settings. */
  readonly environment?: NodeJS.ProcessEnv;
  readonly welcome?: StackOptions['welcome'];
  /** Receives the lines of all parts. */
  readonly sink?: Sink;
}

function settingsOrExit(args: readonly string[], environment: NodeJS.ProcessEnv): InstanceType<typeof StackSettings> {
  if (args.includes('--help')) {
    process.stdout.write(
      `${helpText('npm start', 'the whole service on this machine, for development', StackSettings.schema)}\n${SCALE_USAGE}.\n`,
    );
    process.exit(0);
  }
  try {
    return new StackSettings(readSettings(StackSettings.schema, environment));
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

function scaleOrExit(args: readonly string[]): Scale {
  try {
    return readScale(args);
  } catch (error) {
    if (!(error instanceof WrongScale)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

/**
 * Runs the stack until it is stopped or cannot start, then ends the process: 0 after a stop, 1 if it could not start, 130 after a forced stop.
 */
export function runInTerminal({
  services,
  sameKeypressMs = SAME_KEYPRESS_MS,
  args = process.argv.slice(2),
  environment = process.env,
  welcome,
  sink,
}: TerminalOptions = {}): void {
  const settings = settingsOrExit(args, environment);
  const scale = scaleOrExit(args);
  const output = new Output(partNames(scale), sink);
  const typedAt = Number(process.env.START_TYPED_AT) || Date.now();
  const stack = openStack({
    settings,
    scale,
    output,
    typedAt,
    ...(services && { services }),
    ...(welcome && { welcome }),
  });

  let askedAt: number | undefined;
  let exitCode = 0;
  function end(why: string): void {
    if (askedAt !== undefined) return;
    askedAt = Date.now();
    output.say(`${why}: stopping, the gateway first (Ctrl-C again to force)`);
    void stack.stop().then(() => {
      output.say('Stopped');
      process.exit(exitCode);
    });
  }

  function onSignal(name: string): void {
    if (askedAt === undefined) end(name);
    else if (Date.now() - askedAt > sameKeypressMs) {
      output.say('Killing all services now');
      exitCode = 130;
      void stack.force();
    }
  }

  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => onSignal(name));
  process.once('disconnect', () => end('npm start has ended'));
  // A closed terminal or pipe accepts no output. The parts are stopped all the same.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => end('the terminal is closed'));

  stack.ready.catch((error: Error) => {
    if (askedAt !== undefined) return;
    process.stderr.write(`Cannot start: ${error.message}\n`);
    process.exit(1);
  });
}
