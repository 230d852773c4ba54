// docs/decisions/0031: users of Redis with explicit keys may use the keys and commands of their services' scripts. Otherwise a denied command
// would be found only if a test runs the script on a whole stack.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { page, root } from './markdown.ts';

const LUA = 'packages/store/lua';

/** The scripts of each service. Only the dispatcher uses receivers' slots and circuits, and it may use all their keys. */
const SCRIPTS = {
  worker: ['take', 'append', 'reserve', 'head', 'end', 'renew', 'log', 'ready'],
  dispatcher: ['delivery-begin', 'delivery-record', 'ready'],
  hosts: ['hosts', 'host-look'],
  gateway: [
    ...['accept', 'cancel', 'go-on', 'follow', 'unfollow', 'attend', 'list', 'result', 'delivery-redeliver', 'ready'],
    ...['reap', 'sweep', 'forget-project'],
  ],
} as const;

/** Returns a script with its shared parts, without comments. */
const source = (name: string): string =>
  page(`${LUA}/${name}.lua`)
    .replace(/^--@include (\S+)$/gm, (_, part: string) => source(`shared/${part}`))
    .replace(/^\s*--.*$/gm, '');

/** Returns the text of a name in keys.ts, such as `run:` for `K.run`. */
function keyOf(name: string): string {
  const [, text = ''] = new RegExp(`^  ${name}: '([^']+)',$`, 'm').exec(page('packages/store/src/keys.ts')) ?? [];
  expect([name, text]).not.toEqual([name, '']);
  return text;
}

const rulesOf = (user: string): string[] => {
  const rules = page('deploy/redis/users.acl').replace(/\n +/g, ' ');
  return new RegExp(`^user ${user} (.*)$`, 'm').exec(rules)?.[1]?.split(' ') ?? [];
};

test('this list has a service for every script', () => {
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
