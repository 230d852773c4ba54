// `npm run --silent token -- --project demo`: prints or revokes a bearer token for the development stack of this folder.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { main, node, Refused, root, run } from './prepare.mjs';

await main(async () => {
  const program = join(root, 'apps', 'gateway', 'dist', 'bundle', 'token.js');
  const built = join(root, 'packages', 'supervisor', 'dist', 'secrets.js');
  if (!existsSync(program) || !existsSync(built))
    throw new Refused('The token program is not built: run npm start first');
  const { jwtSecretFile } = await import(built);
  const file = jwtSecretFile(resolve(root, process.env.DATA_DIR ?? '.data'));
  if (!process.env.JWT_SECRET && !existsSync(file))
    throw new Refused('There is no development secret: run npm start first, which creates the secret');
  const JWT_SECRET = process.env.JWT_SECRET || readFileSync(file, 'utf8').trim();
  return run(node, [program, ...process.argv.slice(2)], { env: { ...process.env, JWT_SECRET } });
});
