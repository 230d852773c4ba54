// A stack in a terminal: its settings, its signals, its final message and its exit code.
import { helpText, readSettings, SettingsError } from '@inference-proxy/platform';
import { Output } from './output.ts';
import { readScale, SCALE_USAGE, type Scale, WrongScale } from './scale.ts';
import { partNames } from './services.ts';
import { openStack, type StackOptions } from './stack.ts';
import { StackSettings } from './stack-settings.ts';

/** The terminal and npm both send a Ctrl-C, so two signals within this time count as one. */
const SAME_KEYPRESS_MS = 300;

function settingsOrExit(): InstanceType<typeof StackSettings> {
  if (process.argv.includes('--help')) {
    process.stdout.write(
      `${helpText('npm start', 'the whole service on this machine, for development', StackSettings.schema)}\n${SCALE_USAGE}.\n`,
    );
    process.exit(0);
  }
  try {
    return new StackSettings(readSettings(StackSettings.schema));
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

function scaleOrExit(): Scale {
  try {
    return readScale(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof WrongScale)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

/**
 * Runs the stack until it is stopped or cannot start, then ends the process: 0 after a stop, 1 if it could not start, 130 after a forced stop.
 *
 * @param services returns the processes instead of the services of `apps/`
 * @param sameKeypressMs maximum time between two signals of one Ctrl-C
 */
export function runInTerminal(services?: StackOptions['services'], sameKeypressMs = SAME_KEYPRESS_MS): void {
  const settings = settingsOrExit();
  const scale = scaleOrExit();
  const output = new Output(partNames(scale));
  const typedAt = Number(process.env.START_TYPED_AT) || Date.now();
  const stack = openStack({ settings, scale, output, typedAt, ...(services && { services }) });

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
