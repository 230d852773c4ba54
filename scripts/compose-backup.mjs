// `npm run compose:backup -- <file> [<options of compose>]`: copies the data of Redis into a file while the stack serves.
import { openSync, renameSync, rmSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { Compose } from './compose.mjs';
import { main, Refused, root, say } from './prepare.mjs';

const USAGE = 'Usage: npm run compose:backup -- <file> [<options of compose, such as --file docker-compose.yml>]';

/** Runs as the user of Redis that may copy all data and change none. */
const COPY = 'REDISCLI_AUTH=$REDIS_BACKUP_PASSWORD redis-cli --user backup --rdb -';

await main(async () => {
  const [name, ...options] = process.argv.slice(2);
  if (!name || name.startsWith('-')) throw new Refused(USAGE);
  const file = resolve(root, name);
  const part = `${file}.part`;
  // Only the owner may read the file, because it contains parameters and results.
  const out = openSync(part, 'w', 0o600);
  try {
    await new Compose(options).run(['exec', '-T', 'redis', 'sh', '-c', COPY], { out });
    renameSync(part, file);
  } finally {
    rmSync(part, { force: true });
  }
  say(`Wrote ${file}, ${statSync(file).size} bytes. Keep .env with it: SECRETS_KEY opens the webhook secrets`);
  return 0;
});
