// docs/decisions/0031: the rules of the users that functions may get hold of, or that have explicit keys, cover the scripts that these
// services run. A denied command would show only where a test runs the script on a whole stack.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { page, root } from './markdown.ts';

const LUA = 'packages/store/lua';

/** The scripts of each service. Receivers' slots and circuits are the dispatcher's alone, with all their keys. */
const SCRIPTS = {
  worker: ['take', 'append', 'reserve', 'head', 'end', 'renew', 'log', 'ready'],
  dispatcher: ['delivery-begin', 'delivery-record', 'ready'],
  hosts: ['hosts', 'host-look'],
  gateway: [
    ...['accept', 'cancel', 'go-on', 'follow', 'unfollow', 'attend', 'list', 'delivery-redeliver', 'ready'],
    ...['reap', 'sweep', 'forget-project'],
  ],
} as const;

/** A script with its shared parts, without comments. */
const source = (name: string): string =>
  page(`${LUA}/${name}.lua`)
    .replace(/^--@include (\S+)$/gm, (_, part: string) => source(`shared/${part}`))
    .replace(/^\s*--.*$/gm, '');

/** What a name of keys.ts stands for, such as `run:` of `K.run`. */
function keyOf(name: string): string {
  const [, text = ''] = new RegExp(`^  ${name}: '([^']+)',$`, 'm').exec(page('packages/store/src/keys.ts')) ?? [];
  expect([name, text]).not.toEqual([name, '']);
  return text;
}

const rulesOf = (user: string): string[] => {
  const rules = page('deploy/redis/users.acl').replace(/\n +/g, ' ');
  return new RegExp(`^user ${user} (.*)$`, 'm').exec(rules)?.[1]?.split(' ') ?? [];
};

test('every script is run by a service of this list', () => {
  const files = readdirSync(join(root, LUA)).filter((name) => name.endsWith('.lua'));
  const listed = new Set<string>(Object.values(SCRIPTS).flat());
  expect(files.map((name) => name.replace('.lua', '')).filter((name) => !listed.has(name))).toEqual([]);
});

test.each(['worker', 'dispatcher'] as const)('the user %s has the keys and channels of its scripts', (user) => {
  const rules = rulesOf(user).map((rule) => rule.replace(/^%[RW]/, ''));
  const names = new Set(
    SCRIPTS[user].flatMap((name) => [...source(name).matchAll(/\bK\.(\w+)/g)].map(([, key = '']) => key)),
  );
  for (const name of names) {
    const key = `ip:{*}:${keyOf(name)}${keyOf(name).endsWith(':') ? '*' : ''}`;
    expect(rules).toContain(name.startsWith('to') && name !== 'took' ? `&${key}` : `~${key}`);
  }
});

test('the user worker has the commands of its scripts', () => {
  const rules = rulesOf('worker');
  const commands = new Set(
    SCRIPTS.worker.flatMap((name) =>
      [...source(name).matchAll(/(?:call|many)\('([A-Z]+)'/g)].map(([, command = '']) => command),
    ),
  );
  expect(commands.size).toBeGreaterThan(20);
  for (const command of commands) expect(rules).toContain(`+${command.toLowerCase()}`);
});
