// `npm run lint` rejects a package whose build works here and not in the image (scripts/lint-image.mjs).
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { root } from './markdown.ts';

const lint = (...folder: string[]) =>
  promisify(execFile)(process.execPath, [join(root, 'scripts', 'lint-image.mjs'), ...folder]);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'image-'));
  await file('Dockerfile', 'RUN for built in packages/base packages/upper; \\\n  do npm run build; done\n');
  await file('.dockerignore', '*\n!packages\n**/dist\n**/*.test.ts\n');
  for (const name of ['base', 'upper']) {
    await file(`packages/${name}/package.json`, JSON.stringify({ name: `@inference-proxy/${name}` }));
    const config = { compilerOptions: { rootDir: 'src' }, include: ['src/**/*.ts'], exclude: ['src/**/*.test.ts'] };
    await file(`packages/${name}/tsconfig.build.json`, JSON.stringify(config));
  }
  await file('packages/base/src/index.ts', 'export const one = 1;\n');
  await file('packages/upper/src/index.ts', "export { one } from '@inference-proxy/base';\n");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function file(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), text);
}

test('builds that import only earlier packages pass, and tests may import anything', async () => {
  await file('packages/base/src/base.test.ts', "import { Redis } from '@inference-proxy/test/redis';\n");
  expect((await lint(folder)).stderr).toBe('');
});

test.each([
  ['a test helper', 'base', "import { testRedis } from '@inference-proxy/test/redis';"],
  ['a type of a test helper', 'base', "export type Server = import('@inference-proxy/test/redis').TestRedis;"],
  ['a package at run time', 'base', "export const later = () => import('@inference-proxy/supervisor');"],
  ['a later package', 'base', "export * from '@inference-proxy/upper';"],
])('a build that imports %s fails the lint, with the file', async (_, name, text) => {
  await file(`packages/${name}/src/helper.ts`, `${text}\n`);
  const refused = lint(folder);
  await expect(refused).rejects.toMatchObject({ code: 1 });
  await expect(refused).rejects.toMatchObject({
    stderr: expect.stringMatching(/^packages\/base\/src\/helper\.ts imports @/),
  });
});

test('a build that imports a test file fails the lint, although the file exists here', async () => {
  await file('packages/upper/src/index.ts', "import './table.test.ts';\n");
  await file('packages/upper/src/table.test.ts', 'export {};\n');
  await expect(lint(folder)).rejects.toMatchObject({
    stderr: expect.stringContaining('packages/upper/src/table.test.ts, which is not in the image'),
  });
});

test('every package passes the lint, and `npm run lint` checks them', async () => {
  expect((await lint()).stderr).toBe('');
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  expect(scripts.lint.split(' && ')).toContain('node scripts/lint-image.mjs');
});
