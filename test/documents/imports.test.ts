// docs/architecture.md, "Imports run downward": checks every package.json and every import.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from './markdown.ts';

/** The workspaces that each workspace may import. */
const ARROWS: Record<string, readonly string[]> = {
  'packages/contracts': [],
  'packages/retry': [],
  'packages/crypto': ['contracts'],
  'packages/egress': ['contracts'],
  'packages/bundles': ['contracts'],
  'packages/store': ['contracts', 'retry'],
  'packages/platform': ['contracts', 'retry'],
  'packages/supervisor': ['platform'],
  'apps/cli': ['contracts', 'supervisor'],
  'apps/console': [],
  'apps/gateway': ['bundles', 'contracts', 'crypto', 'egress', 'store', 'platform'],
  'apps/worker': ['bundles', 'contracts', 'crypto', 'retry', 'store', 'platform'],
  'apps/dispatcher': ['contracts', 'crypto', 'egress', 'retry', 'store', 'platform'],
  test: ['contracts', 'platform', 'supervisor'],
};
const SCOPE = '@inference-proxy/';

interface Imports {
  readonly file: string;
  readonly from: string;
}

const filesOf = (...patterns: string[]): string[] =>
  globSync(patterns, { cwd: root, exclude: (name) => /(^|\/)(dist|node_modules)(\/|$)/.test(String(name)) }).filter(
    (file) => !/\/(dist|node_modules)\//.test(file),
  );
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Whether a file is test code: a test, a helper in a folder for tests, or a file of the workspace `test`. */
const isTest = (file: string): boolean =>
  /\.test\.ts$|\/(testing|property|lua-tests|journeys|test)\/|^test\/|conformance\.ts$/.test(file);

const imports: Imports[] = filesOf('apps/*/{src,test}/**/*.{ts,tsx}', 'packages/*/src/**/*.ts', 'test/**/*.ts').flatMap(
  (file) =>
    [
      ...textOf(file).matchAll(
        /^(?:import|export)\b[^;'`]*?\bfrom '([^'$]+)';$|^import '([^']+)';$|\bimport\('([^']+)'\)/gm,
      ),
    ].map(([, one, two, three]) => ({
      file,
      from: one ?? two ?? three ?? '',
    })),
);
const sources = imports.filter(({ file }) => !isTest(file));
const workspaceOf = (file: string): string => Object.keys(ARROWS).find((name) => file.startsWith(`${name}/`)) ?? '';

test('every workspace has an arrow and imports', () => {
  const workspaces = filesOf('apps/*/package.json', 'packages/*/package.json', 'test/package.json');
  expect(workspaces.map((file) => file.replace('/package.json', '')).sort()).toEqual(Object.keys(ARROWS).sort());
  expect(new Set(imports.map(({ file }) => workspaceOf(file)))).toEqual(new Set(Object.keys(ARROWS)));
});

test.each(Object.entries(ARROWS))('%s depends on no packages of this repository but %j', (workspace, allowed) => {
  const { dependencies = {}, devDependencies = {} } = JSON.parse(textOf(`${workspace}/package.json`)) as Record<
    string,
    Record<string, string>
  >;
  const ours = (names: string[]): string[] =>
    names.filter((name) => name.startsWith(SCOPE)).map((name) => name.slice(SCOPE.length));
  expect(ours(Object.keys(dependencies)).filter((name) => !allowed.includes(name))).toEqual([]);
  // Test code may also use the workspace `test`.
  expect(ours(Object.keys(devDependencies)).filter((name) => ![...allowed, 'test'].includes(name))).toEqual([]);

  const own = imports.filter(({ file }) => workspaceOf(file) === workspace && !/^(node:|\.)/.test(file));
  const used = own.filter(({ from }) => from.startsWith(SCOPE));
  const wrong = used.filter(({ file, from }) => {
    const [name = ''] = from.slice(SCOPE.length).split('/');
    return !allowed.includes(name) && !(name === 'test' && isTest(file));
  });
  expect(wrong).toEqual([]);
  // Every imported package is declared.
  const packageOf = (from: string): string =>
    from
      .split('/')
      .slice(0, from.startsWith('@') ? 2 : 1)
      .join('/');
  // The root declares jest. `test` depends on `platform`, whose tests use `test`: declaring this would make a circle.
  const UNDECLARED = new Set(['@jest/globals', '@inference-proxy/test']);
  const undeclared = own.filter(({ file, from }) => {
    if (/^(node:|\.)/.test(from) || UNDECLARED.has(packageOf(from))) return false;
    return !(packageOf(from) in dependencies) && !(isTest(file) && packageOf(from) in devDependencies);
  });
  expect(undeclared).toEqual([]);
});

test('no file imports from another workspace by a relative path', () => {
  const wrong = imports.filter(
    ({ file, from }) => from.startsWith('.') && workspaceOf(join(file, '..', from)) !== workspaceOf(file),
  );
  expect(wrong).toEqual([]);
});

/** Returns the source files that import a matching package. */
const users = (pattern: RegExp): string[] => sources.filter(({ from }) => pattern.test(from)).map(({ file }) => file);

test('Nest is only in apps and packages/platform', () => {
  expect(users(/^@nestjs\//).filter((file) => !/^(apps|packages\/platform)\//.test(file))).toEqual([]);
});

test('BullMQ is only in packages/store and apps/dispatcher', () => {
  expect(users(/^bullmq$/).filter((file) => !/^(packages\/store|apps\/dispatcher)\//.test(file))).toEqual([]);
});

test('RxJS is only in the run reader and the gateway’s streaming', () => {
  expect(
    users(/^rxjs/).filter(
      (file) => file !== 'packages/store/src/runs/reader.ts' && !file.startsWith('apps/gateway/src/streaming/'),
    ),
  ).toEqual([]);
});

test('jose is only in the reader of key sets', () => {
  expect(users(/^jose$/)).toEqual(['apps/gateway/src/auth/key-set.ts']);
});

test('only settings files read the environment', () => {
  // The supervisor passes the environment on to its processes. The console shows code that reads a token from there.
  const readers = filesOf('apps/*/src/**/*.ts', 'packages/*/src/**/*.ts').filter(
    (file) =>
      !isTest(file) && !/^(packages\/supervisor|apps\/console)\//.test(file) && textOf(file).includes('process.env'),
  );
  expect(readers.filter((file) => !/\/settings\.ts$/.test(file))).toEqual([]);
});

/** Returns the folders of the gateway in the order of the page, the uppermost first. */
const roomsOf = (page: string): string[] => {
  const [, table = ''] = page.split('| gateway folder | content |\n|---|---|\n');
  const rows = table.split('\n\n', 1)[0]?.split('\n') ?? [];
  return rows.map((row) => /^\| `([a-z]+)`/.exec(row)?.[1] ?? row);
};

const GATEWAY = 'apps/gateway/src/';
const ownImports = imports
  .filter(({ file, from }) => file.startsWith(GATEWAY) && !isTest(file) && from.startsWith('.'))
  .map(({ file, from }) => ({ file, to: join(file, '..', from) }));

test('a folder of the gateway imports only from folders below it in docs/architecture.md', () => {
  const rooms = roomsOf(textOf('docs/architecture.md'));
  const roomOf = (file: string): string => /^([a-z]+)\//.exec(file.slice(GATEWAY.length))?.[1] ?? '';
  expect(rooms.toSorted()).toEqual([...new Set(ownImports.map(({ file }) => roomOf(file)))].filter(Boolean).sort());
  // The files above all folders have the level -1.
  const upward = ownImports.filter(({ file, to }) => rooms.indexOf(roomOf(to)) < rooms.indexOf(roomOf(file)));
  expect(upward).toEqual([]);
});

test('no files import each other in a circle', () => {
  const targets = new Map<string, string[]>();
  for (const { file, from } of sources)
    if (from.startsWith('.')) targets.set(file, [...(targets.get(file) ?? []), join(file, '..', from)]);
  const circles: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) circles.push([...path.slice(at), file]);
    if (at >= 0 || done.has(file)) return;
    for (const next of targets.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of targets.keys()) visit(file, []);
  expect(circles).toEqual([]);
});
