// A stack in a terminal: its settings, its signals, its last words and its exit code.
import { helpText, readSettings, SettingsError } from '@inference-proxy/platform';
import { Output } from './output.ts';
import { readScale, SCALE_USAGE, type Scale, WrongScale } from './scale.ts';
import { partNames } from './services.ts';
import { openStack, type StackOptions } from './stack.ts';
import { StackSettings } from './stack-settings.ts';

/** npm passes a terminal's Ctrl-C on although the terminal has sent it already: two signals this close are one. */
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
 * Runs the stack until it is stopped or cannot start, then ends the process: 0 after a stop, 1 where it could not start, 130 where it was forced.
 *
 * @param services which processes it has, where not those of `apps/`
 * @param sameKeypressMs how close two signals of one Ctrl-C are
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
      output.say('Ending everything now');
      exitCode = 130;
      void stack.force();
    }
  }

  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => onSignal(name));
  process.once('disconnect', () => end('npm start has gone'));
  // A terminal or a pipe that has gone takes no more words; the parts are stopped all the same.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => end('the terminal has gone'));

  stack.ready.catch((error: Error) => {
    if (askedAt !== undefined) return;
    process.stderr.write(`Cannot start: ${error.message}\n`);
    process.exit(1);
  });
}
