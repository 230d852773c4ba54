// `npm run secrets [-- --file <path>]`: writes the keys and passwords that production needs to .env. A value that is there is never changed.
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
    // The usage below says what is right.
  }
  throw new Refused(USAGE);
}

const HEAD = `# Keys of the service: whoever has this file can call every function and read every webhook secret. Not for git.
`;

/** 256 bits, as RFC 7518 §3.2 wants of an HS256 key; hexadecimal, because $ and # mean something in such files, and / and @ in URLs. */
const hexadecimal = () => randomBytes(32).toString('hex');

/** What the file has, in groups of a comment and its names. `unless`: another name in the file that stands for the group. */
const GROUPS = [
  {
    comment:
      'Callers’ tokens are signed with this one (docker compose exec gateway token --project demo). An identity provider instead: docs/settings.md.',
    names: ['JWT_SECRET'],
    unless: /^JWT_(PUBLIC_KEY|JWKS_URL)=./m,
    make: hexadecimal,
  },
  {
    comment: 'Webhook secrets at rest are sealed with this one. To change it: the new key, a comma, the old one.',
    names: ['SECRETS_KEY'],
    make: () => randomBytes(32).toString('base64'),
  },
  {
    comment: 'Each service is a user of Redis: deploy/redis/users.acl says what each may do.',
    names: ['ADMIN', 'BACKUP', 'MONITOR', 'GATEWAY', 'WORKER', 'DISPATCHER'].map((user) => `REDIS_${user}_PASSWORD`),
    make: hexadecimal,
  },
];

/** The lines that `text`, the file so far, lacks. */
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
    throw new Refused(`${file} has every key and password already and was left as it is: they may be in use`);
  try {
    const gap = text === '' || text.endsWith('\n') ? '' : '\n';
    if (there) writeFileSync(file, gap + lines, { flag: 'a' });
    else writeFileSync(file, text + lines, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    throw new Refused(`Cannot write ${file}: ${error.message}`);
  }
  const done = there ? `Added to ${file} what it lacked` : `Wrote ${file} (only its owner can read it)`;
  say(`${done}. Next: docker compose up --build`);
  return 0;
});
