// `npm run secrets [-- --file <path>]`: writes the keys that production needs to .env, once. A file that is there is never touched.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { main, Refused, root, say } from './prepare.mjs';

const USAGE = 'Usage: npm run secrets [-- --file <path, default .env>]';

function fileAsked() {
  try {
    const { values } = parseArgs({ options: { file: { type: 'string', default: '.env' } } });
    if (values.file) return resolve(root, values.file);
  } catch {
    // Said below, with what would be right.
  }
  throw new Refused(USAGE);
}

/** 256 bits, as RFC 7518 §3.2 wants of an HS256 key; hexadecimal, since $ and # mean something in such files. */
const TEXT = `# Keys of the service: whoever has this file can call every function and read every webhook secret. Not for git.
# Callers' tokens are signed with this one (docker compose exec gateway token --project demo). An identity provider instead: docs/settings.md.
JWT_SECRET=${randomBytes(32).toString('hex')}
# Webhook secrets at rest are sealed with this one. To change it: the new key, a comma, the old one.
SECRETS_KEY=${randomBytes(32).toString('base64')}
`;

await main(() => {
  const file = fileAsked();
  try {
    writeFileSync(file, TEXT, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (error.code === 'EEXIST')
      throw new Refused(`${file} is there already and was left as it is: its keys may be in use`);
    throw new Refused(`Cannot write ${file}: ${error.message}`);
  }
  say(`Wrote ${file} (only its owner can read it). Next: docker compose up --build`);
  return 0;
});
