// `npm run --silent token -- --project demo [--ttl 3600]`: prints a bearer token for the development stack of this folder.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { main, Refused, root } from './prepare.mjs';

const USAGE = 'Usage: npm run --silent token -- --project <project id, or * for all> [--ttl <seconds, default 3600>]';

function options() {
  try {
    const { values } = parseArgs({
      options: { project: { type: 'string' }, ttl: { type: 'string', default: '3600' } },
    });
    if (values.project && Number(values.ttl) > 0)
      return { project: values.project, ttlS: Math.floor(Number(values.ttl)) };
  } catch {
    // Said below, with what would be right.
  }
  throw new Refused(USAGE);
}

await main(async () => {
  const { project, ttlS } = options();
  const built = join(root, 'test', 'dist', 'stack');
  if (!existsSync(join(built, 'tokens.js'))) throw new Refused('Nothing is built here yet: run npm start first');
  const { jwtSecretFile } = await import(join(built, 'secrets.js'));
  const { signToken } = await import(join(built, 'tokens.js'));
  const { isProjectName, PROJECT_NAME_FORM } = await import('@inference-proxy/contracts');
  if (project !== '*' && !isProjectName(project))
    throw new Refused(`The project name ${JSON.stringify(project)} must have ${PROJECT_NAME_FORM}.`);
  const file = jwtSecretFile(resolve(root, process.env.DATA_DIR ?? '.data'));
  if (!process.env.JWT_SECRET && !existsSync(file))
    throw new Refused('There is no development secret yet: run npm start first, it makes one');
  process.stdout.write(
    `${signToken(process.env.JWT_SECRET || readFileSync(file, 'utf8').trim(), { project, ttlS })}\n`,
  );
  return 0;
});
