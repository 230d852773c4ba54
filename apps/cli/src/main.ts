// Contract 7, "Command line": the program `inference-proxy`.
import { CommanderError } from 'commander';
import { programOf } from './program.ts';
import { EXIT_CODES, Failure } from './service/failures.ts';
import { closeConnections } from './service/service.ts';
import { readSettings } from './settings.ts';
import { Output } from './terminal/output.ts';

/** Returns the failure of an error. @throws the error itself if it is a defect of this program */
function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (!(error instanceof CommanderError)) throw error;
  const text = error.message.replace(/^error: /, '');
  return new Failure('usage', `${text}\nMore: add --help to the command`, { error: { code: 'usage', message: text } });
}

// A reader such as `head` closes the pipe when it has enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT_CODES.done.code);
});

const args = process.argv.slice(2);
const program = programOf(readSettings());
try {
  await program.parseAsync(args, { from: 'user' });
} catch (error) {
  // Commander also throws after `--help`, with exit code 0. It has printed the help of a group that was named without a command.
  if (error instanceof CommanderError && error.code === 'commander.help') process.exitCode = EXIT_CODES.usage.code;
  else if (!(error instanceof CommanderError && error.exitCode === 0)) {
    const failure = failureOf(error);
    new Output(args.includes('--json')).failure(failure);
    process.exitCode = EXIT_CODES[failure.exit].code;
  }
} finally {
  await closeConnections();
}
