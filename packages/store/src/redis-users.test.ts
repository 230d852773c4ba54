// docs/decisions/0031: users of Redis with explicit keys may use the keys and commands of their services' scripts. Otherwise a denied command
// would be found only if a test runs the script on a whole stack.
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { names } from './keys.ts';
import { type ScriptName, scriptNames, scriptSource } from './script-files.ts';

/** The scripts of each service. Only the dispatcher uses receivers' slots and circuits, and it may use all their keys. */
const SCRIPTS = {
  worker: ['take', 'append', 'reserve', 'head', 'end', 'renew', 'log', 'version-report', 'ready'],
  dispatcher: ['delivery-begin', 'delivery-record', 'ready'],
  hosts: ['hosts', 'host-look'],
  gateway: [
    ...['accept', 'cancel', 'detach', 'follow', 'unfollow', 'attend', 'list', 'result', 'delivery-redeliver', 'ready'],
    ...[
      'reap',
      'sweep',
      'forget-project',
      'version-deploy',
      'version-activate',
      'roll-outs',
      'app-delete',
      'stats',
      'app-counts',
    ],
    ...['versions-trim', 'secret-reseal'],
  ],
} as const;

/** Returns a script with the definitions that it includes, without comments. */
const source = (name: ScriptName): string => scriptSource(name).replace(/--.*$/gm, '');

const rulesOf = (user: string): string[] => {
  const rules = readFileSync(new URL('../../../deploy/redis/users.acl', import.meta.url), 'utf8').replace(/\n +/g, ' ');
  return new RegExp(`^user ${user} (.*)$`, 'm').exec(rules)?.[1]?.split(' ') ?? [];
};

test('this list has a service for every script', () => {
  const listed = new Set<string>(Object.values(SCRIPTS).flat());
  expect(scriptNames.filter((name) => !listed.has(name))).toEqual([]);
});

test.each(['worker', 'dispatcher'] as const)('the user %s has the keys and channels of its scripts', (user) => {
  const rules = rulesOf(user).map((rule) => rule.replace(/^%[RW]/, ''));
  const used = new Set(
    SCRIPTS[user].flatMap((name) => [...source(name).matchAll(/\bK\.(\w+)/g)].map(([, key = '']) => key)),
  );
  for (const name of used) {
    const [, text = ''] = Object.entries(names).find(([key]) => key === name) ?? [];
    const key = `ip:{*}:${text}${text.endsWith(':') ? '*' : ''}`;
    expect(rules).toContain(name.startsWith('to') && name !== 'took' ? `&${key}` : `~${key}`);
  }
});

test('the user worker has the commands of its scripts', () => {
  const rules = rulesOf('worker');
  const commands = new Set(
    SCRIPTS.worker.flatMap((name) =>
      [...source(name).matchAll(/(?:call|send_members)\('([A-Z]+)'/g)].map(([, command = '']) => command),
    ),
  );
  expect(commands.size).toBeGreaterThan(20);
  for (const command of commands) expect(rules).toContain(`+${command.toLowerCase()}`);
});
