// Checks the text of docker-compose.yml and of the files that it uses. These tests need no container engine.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { longestStopMs } from '@inference-proxy/platform';
import { REDIS_USERS, redisArguments, redisPasswords, usersFile } from '@inference-proxy/supervisor';
import { expect, test } from '@jest/globals';
import { page, root, tableRows, ticked } from '../documents/markdown.ts';

const compose = page('docker-compose.yml');
const dockerfile = page('Dockerfile');

/** Returns the lines of a service, or of another block that begins with `head`. */
function block(head: string, indent = ''): string {
  const lines = compose.split('\n');
  const from = lines.findIndex((line) => line.startsWith(`${indent}${head}:`));
  const rest = lines.slice(from + 1);
  const to = rest.findIndex(
    (line) => line.trim() !== '' && !line.startsWith(`${indent} `) && !line.startsWith(`${indent}#`),
  );
  return rest.slice(0, to === -1 ? undefined : to).join('\n');
}

const environmentOf = (text: string): string[] =>
  [...text.matchAll(/^ +([A-Z][A-Z0-9_]+):/gm)].map(([, name = '']) => name);
const settingsOf = (heading: RegExp): string[] =>
  tableRows(page('docs/settings.md'), heading).flatMap(([name = '']) => ticked(name));

/** Settings that the image fixes, because a container has only one useful value. */
const IN_THE_IMAGE = ['NODE_ENV', 'OPERATIONS_HOST', 'OPERATIONS_PORT', 'HOST', 'PORT', 'DEPLOYMENTS_DIR'];
/** Settings of package tools, not of a service. The worker passes them to builds. */
const OF_TOOLS = ['NPM_CONFIG_REGISTRY', 'PIP_CONSTRAINT', 'PIP_EXTRA_INDEX_URL', 'PIP_INDEX_URL'];

test.each(['gateway', 'worker', 'dispatcher'])(
  'every setting of the %s can be set in .env, and the container gets no other setting',
  (service) => {
    const wanted = [...settingsOf(/^Every service/), ...settingsOf(new RegExp(`^${service}`, 'i'))];
    const passed = [...environmentOf(block('x-common')), ...environmentOf(block(`x-${service}`))];
    const ofService = wanted.filter((name) => !IN_THE_IMAGE.includes(name));
    expect(passed.sort()).toEqual([...ofService, ...(service === 'worker' ? OF_TOOLS : [])].sort());
    const stage = dockerfile.split(/^FROM /m).filter((text) => / AS (service|\w+)\n/.test(text));
    const said = stage.filter((text) => text.includes(` AS service\n`) || text.includes(` AS ${service}\n`)).join('\n');
    for (const name of wanted.filter((one) => IN_THE_IMAGE.includes(one))) expect(said).toContain(`${name}=`);
  },
);

test('the worker gets no token key and no sealing key', () => {
  expect(block('x-worker')).not.toMatch(/JWT_|SECRETS_KEY/);
  expect(block('x-common')).not.toMatch(/JWT_|SECRETS_KEY/);
});

const services = [
  ...((compose.split(/^services:$/m)[1] ?? '').split(/^networks:$/m)[0]?.matchAll(/^ {2}([a-z-]+):$/gm) ?? []),
].map(([, name = '']) => name);

test('every container has limits, cannot write its root and has only the capabilities that it needs', () => {
  expect(services).toEqual(expect.arrayContaining(['proxy', 'gateway', 'worker', 'dispatcher', 'redis']));
  const bounds = ['read_only: true', 'tmpfs:', 'cap_drop: [ALL]', 'no-new-privileges:true', 'pids_limit:', 'cpus:'];
  for (const bound of bounds) expect(block('x-contained')).toContain(bound);
  expect(block('x-service')).toContain('<<: *contained');
  for (const service of services) {
    const [, anchor = ''] = /^ {4}<<: \*([a-z]+)$/m.exec(block(service, '  ')) ?? [];
    const all = block(service, '  ') + (anchor === 'contained' ? '' : block(`x-${anchor}`));
    expect([service, anchor === 'contained' || all.includes('<<: *service')]).toEqual([service, true]);
    expect([service, all.includes('mem_limit:')]).toEqual([service, true]);
  }
  // Only one service adds capabilities, and the file states the reason. No service weakens the shared limits.
  expect(compose.match(/cap_add:/g)).toHaveLength(1);
  expect(compose).not.toMatch(/privileged|read_only: false|seccomp|pid: host|network_mode: host/);
});

test('a digest can pin every image that is not built here', () => {
  const named = [...compose.matchAll(/^ {4}image: (\S+)$/gm)].map(([, image = '']) => image);
  const foreign = named.filter((image) => image.includes('_IMAGE'));
  expect(foreign.length).toBeGreaterThan(1);
  for (const image of foreign) expect(image).toMatch(/^\$\{([A-Z_]+)_IMAGE:-[^}]+\}\$\{\1_DIGEST:-\}$/);
  expect(dockerfile.match(/^FROM \$/gm)).toEqual(['FROM $']);
  expect(dockerfile).toMatch(/^FROM \$\{NODE_IMAGE\}\$\{NODE_DIGEST\} AS base$/m);
  expect(block('x-build-args')).toMatch(/NODE_DIGEST/);
});

test('a custom image has every setting, limit and network of the workers', () => {
  const own = page('examples/image/docker-compose.yml');
  expect(own).toContain('extends: { file: docker-compose.yml, service: worker-settings }');
  expect(block('worker-settings', '  ')).toContain('<<: *worker');
  expect(own).not.toMatch(/REDIS_URL|cap_drop|stop_grace_period/);
});

test('the Redis of compose has the settings of the Redis of npm start', () => {
  const command = /command: >-\n([\s\S]*?)\n {4}\w/.exec(block('redis', '  '))?.[1] ?? '';
  const words = command
    .replaceAll(/\$\{\w+:-(\w+)\}/g, '$1')
    .replaceAll("''", '')
    .replaceAll(/\s+/g, ' ');
  // The address and the folder belong to the container. The run store requires all other settings.
  const shared = redisArguments
    .join(' ')
    .split(/(?= ?--)/)
    .map((argument) => argument.trim());
  expect(shared.length).toBeGreaterThan(5);
  for (const argument of shared) expect(words).toContain(argument);
});

test('each service has its user of Redis, and Redis gets the passwords of all users', () => {
  for (const service of ['gateway', 'worker', 'dispatcher']) {
    const url = /REDIS_URL: (.*)/.exec(block(`x-${service}`))?.[1] ?? '';
    expect(url).toContain(`://${service}:\${REDIS_${service.toUpperCase()}_PASSWORD:?`);
    for (const user of REDIS_USERS.filter((name) => name !== service))
      expect(block(`x-${service}`)).not.toContain(`REDIS_${user.toUpperCase()}_PASSWORD`);
  }
  const passwords = environmentOf(block('redis', '  ')).filter((name) => name.endsWith('_PASSWORD'));
  expect(passwords.sort()).toEqual(REDIS_USERS.map((user) => `REDIS_${user.toUpperCase()}_PASSWORD`).sort());
});

test('the container of Redis creates the same users as the supervisor', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'redis-users-'));
  const passwords = redisPasswords('a1b2c3');
  const env = Object.fromEntries(REDIS_USERS.map((user) => [`REDIS_${user.toUpperCase()}_PASSWORD`, passwords[user]]));
  const file = join(folder, 'users.acl');
  const start = (more: Record<string, string>) =>
    promisify(execFile)(
      'sh',
      [join(root, 'deploy/redis/start.sh'), join(root, 'deploy/redis/users.acl'), 'echo', 'started'],
      {
        env: { PATH: process.env.PATH, REDIS_ACL_FILE: file, ...env, ...more },
      },
    );
  expect((await start({})).stdout).toBe(`started --aclfile ${file}\n`);
  const hashed = (await readFile(file, 'utf8')).replace(/ >(\w+)/g, (_, password: string) => {
    return ` #${createHash('sha256').update(password).digest('hex')}`;
  });
  expect(hashed).toBe(usersFile(passwords));
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  for (const wrong of ['', 'two words', 'x +@all'])
    await expect(start({ REDIS_WORKER_PASSWORD: wrong })).rejects.toMatchObject({
      stderr: expect.stringContaining('REDIS_WORKER_PASSWORD must be letters and digits'),
    });
  await rm(folder, { recursive: true });
});

test('the stop limit of a service is longer than the deadlines of the service', () => {
  const grace = Number(/SHUTDOWN_GRACE_S:-(\d+)/.exec(compose)?.[1]);
  const limits = [...compose.matchAll(/stop_grace_period: \$\{STOP_GRACE_PERIOD:-(\d+)s\}/g)].map(([, s]) => Number(s));
  expect(limits.length).toBeGreaterThan(1);
  for (const limit of limits) expect(limit * 1000).toBeGreaterThan(longestStopMs({ delayS: 0, graceS: grace }));
});

test('no service runs as root, and an init is pid 1', () => {
  for (const service of ['gateway', 'worker', 'dispatcher']) {
    const [stage = ''] = dockerfile.split(/^FROM /m).filter((text) => text.startsWith(`service AS ${service}\n`));
    expect(stage).toMatch(/^USER node$/m);
    expect(stage).not.toMatch(/^ENTRYPOINT/m);
  }
  expect(dockerfile).toMatch(/^ENTRYPOINT \["tini", "--"\]$/m);
});

test('the images contain only the named files', () => {
  const [first = ''] = page('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(first).toBe('*');
  for (const path of page('.dockerignore').matchAll(/^!(.+)$/gm))
    expect([path[1], existsSync(path[1] ?? '')]).toEqual([path[1], true]);
});
