// The process behind `npm start`: signals, the terminal, and the exit code.
import { helpText, readSettings, SettingsError } from '@inference-proxy/platform';
import { Output } from './output.ts';
import { partNames } from './services.ts';
import { openStack } from './stack.ts';
import { StackSettings } from './stack-settings.ts';

/** npm passes a terminal's Ctrl-C on although the terminal has sent it already: two signals this close are one. */
const SAME_KEYPRESS_MS = 300;

function settingsOrExit(): InstanceType<typeof StackSettings> {
  if (process.argv.includes('--help')) {
    process.stdout.write(
      helpText('npm start', 'the whole service on this machine, for development', StackSettings.schema),
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

const output = new Output(partNames);
const typedAt = Number(process.env.START_TYPED_AT) || Date.now();
const stack = openStack({ settings: settingsOrExit(), output, typedAt });

let askedAt: number | undefined;
function end(why: string): void {
  if (askedAt !== undefined) return;
  askedAt = Date.now();
  output.say(`${why}: stopping, the gateway first (Ctrl-C again to force)`);
  void stack.stop().then(() => {
    output.say('Stopped');
    process.exit(0);
  });
}

function onSignal(name: string): void {
  if (askedAt === undefined) end(name);
  else if (Date.now() - askedAt > SAME_KEYPRESS_MS) {
    output.say('Ending everything now');
    void stack.force().then(() => process.exit(130));
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
