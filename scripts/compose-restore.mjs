// `npm run compose:restore -- <file> [--replace] [<options of compose>]`: stops the stack, loads the file into Redis, and starts the stack.
import { existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { Compose } from './compose.mjs';
import { main, Refused, root, say } from './prepare.mjs';

const USAGE =
  'Usage: npm run compose:restore -- <file> [--replace: overwrite what Redis has] [<options of compose, such as --file docker-compose.yml>]';

/** Makes the copy the base of an append-only file, where Redis accepts its snapshot format. Removes old data only after the check. */
const PUT_IN_PLACE = String.raw`set -eu
cd /data
if [ -e appendonlydir ] && [ "$1" != --replace ]; then echo "Redis has data already. To overwrite it: --replace" >&2; exit 3; fi
rm -rf restored
mkdir restored
cat >restored/appendonly.aof.1.base.rdb
redis-check-rdb restored/appendonly.aof.1.base.rdb >/tmp/check || { cat /tmp/check >&2; exit 4; }
# redis-cli leaves 40 bytes of its transfer after the data. An append-only file must end with the data.
end=$(sed -n 's/^\[offset \([0-9]*\)\].*RDB looks OK.*/\1/p' /tmp/check)
truncate -s "$end" restored/appendonly.aof.1.base.rdb
echo "file appendonly.aof.1.base.rdb seq 1 type b" >restored/appendonly.aof.manifest
rm -rf appendonlydir dump.rdb
mv restored appendonlydir`;

await main(async () => {
  const [name, ...rest] = process.argv.slice(2);
  if (!name || name.startsWith('-')) throw new Refused(USAGE);
  const file = resolve(root, name);
  if (!existsSync(file))
    throw new Refused(`The backup ${file} does not exist. Name a file that npm run compose:backup wrote`);
  const replace = rest.includes('--replace') ? '--replace' : '';
  const compose = new Compose(rest.filter((option) => option !== '--replace'));
  await compose.run(['stop']);
  const once = ['run', '--rm', '--no-deps', '-T', 'redis', 'sh', '-c', PUT_IN_PLACE, 'restore', replace];
  await compose.run(once, { input: openSync(file, 'r') });
  await compose.run(['up', '--detach', '--no-build']);
  say(`Redis holds what ${file} has. Runs that were under way at the copy end as worker_lost`);
  return 0;
});
