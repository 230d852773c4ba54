// `npm run secrets [-- --file <path>]`: writes the keys and passwords of production to .env. Never changes an existing value.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { main, Refused, root, say } from './prepare.mjs';

const USAGE = 'Usage: npm run secrets [-- --file <path, default .env>]';

function fileAsked() {
  try {
    const { values } = parseArgs({ options: { file: { type: 'string', default: '.env' } } });
    if (values.file) return resolve(root, values.file);
  } catch {
    // The usage below shows the correct arguments.
  }
  throw new Refused(USAGE);
}

const HEAD = `# Keys of the service: with this file, anybody can call every function and read every webhook secret. Never commit it to git.
`;

/** 256 bits, as RFC 7518 §3.2 requires of an HS256 key. Hexadecimal, because $ and # have a meaning in .env files, and / and @ in URLs. */
const hexadecimal = () => randomBytes(32).toString('hex');

/** The groups of the file, each with a comment and names. `unless`: a pattern of settings that replace the group. */
const GROUPS = [
  {
    comment:
      'This key signs callers’ tokens (docker compose exec gateway token --project demo). To use an identity provider: docs/settings.md.',
    names: ['JWT_SECRET'],
    unless: /^JWT_(PUBLIC_KEY|JWKS_URL)=./m,
    make: hexadecimal,
  },
  {
    comment: 'This key seals stored webhook secrets. To change it, write the new key, a comma and the old key.',
    names: ['SECRETS_KEY'],
    make: () => randomBytes(32).toString('base64'),
  },
  {
    comment: 'Each service is a user of Redis. deploy/redis/users.acl has the rights of each user.',
    names: ['ADMIN', 'BACKUP', 'MONITOR', 'GATEWAY', 'WORKER', 'DISPATCHER'].map((user) => `REDIS_${user}_PASSWORD`),
    make: hexadecimal,
  },
];

/** Returns the lines that are missing in `text`, the current file. */
function missing(text) {
  const lines = [];
  for (const { comment, names, unless, make } of GROUPS) {
    if (unless?.test(text)) continue;
    const wanted = names.filter((name) => !new RegExp(`^${name}=`, 'm').test(text));
    if (wanted.length > 0) lines.push(`# ${comment}`, ...wanted.map((name) => `${name}=${make()}`));
  }
  return lines.map((line) => `${line}\n`).join('');
}

await main(() => {
  const file = fileAsked();
  const there = existsSync(file);
  const text = there ? readFileSync(file, 'utf8') : HEAD;
  const lines = missing(text);
  if (lines === '')
    throw new Refused(
      `${file} already has every key and password, so nothing was changed. To get new values, name another file: --file <path>`,
    );
  try {
    const gap = text === '' || text.endsWith('\n') ? '' : '\n';
    if (there) writeFileSync(file, gap + lines, { flag: 'a' });
    else writeFileSync(file, text + lines, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    throw new Refused(`Cannot write ${file}: ${error.message}`);
  }
  const done = there ? `Added the missing values to ${file}` : `Wrote ${file} (only its owner can read it)`;
  say(`${done}. Next: docker compose up --build`);
  return 0;
});
