// Logs the causes of commands that Redis refused: a bug in a script, NOPERM or READONLY is otherwise only an error to a caller.
import type { Redis } from 'ioredis';
import type { Logger } from './logging.ts';
import { type LineLog, repeatedLines } from './repeated-lines.ts';

const ONCE_PER_MS = 1_000;
/** Redis forgets scripts at a restart. The sender of the command then sends the script. */
const EXPECTED = /^(NOSCRIPT|BUSYGROUP)/;

/** A log for each service's logger: the connections of a service share a line for each kind of error. */
const logs = new WeakMap<Logger, LineLog>();

/** Logs each error reply to this client, and to the clients that it is duplicated to, once per second and kind of error. */
export function logRefusals(client: Redis, name: string, logger: Logger): void {
  let log = logs.get(logger);
  if (!log) {
    log = repeatedLines(logger, { againMs: ONCE_PER_MS, summary: false });
    logs.set(logger, log);
  }
  const lines = log;
  const { sendCommand } = client;
  client.sendCommand = function (this: Redis, command, stream) {
    const { reject } = command;
    command.reject = (err) => {
      // ioredis adds the command with its arguments, which are parameters, results and passwords. No log may show them.
      if ('command' in err) err.command = command.name;
      // Logged later, after the store has added the name of its script.
      if (err.name === 'ReplyError' && !EXPECTED.test(err.message))
        setImmediate(() => lines.error({ err, connection: name }, 'Redis refused a command'));
      reject(err);
    };
    return sendCommand.call(this, command, stream);
  };
}
