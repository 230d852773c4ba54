// A part of `npm run lint`: fails if a build in the image (Dockerfile) would lack a file or package that the same build has here.
// The image has no test files, and builds few packages: a module of a build that imports a test helper breaks only `docker build`.
// Argument: the folder to check; default: this repository.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, matchesGlob, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from '@swc/core';

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const root = process.argv[2] ?? here;
const tsc = join(here, 'node_modules', '.bin', 'tsc');
const read = (path) => readFileSync(join(root, path), 'utf8');

/** Returns the packages that the image builds, in order. */
function builtPackages() {
  const [, list] = read('Dockerfile').match(/^RUN for built in ([^;]+);/m) ?? [];
  if (!list) throw new Error('Dockerfile has no line `RUN for built in <packages>;`: update scripts/lint-image.mjs');
  return list.trim().split(/\s+/);
}

const ignoreRules = read('.dockerignore')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => ({ pattern: line.replace(/^!/, ''), kept: line.startsWith('!') }));

/** Returns whether Docker sends a file to the build. The last rule that matches the file or a folder above it decides. */
function isSent(path) {
  const parts = path.split('/');
  const names = parts.map((_, at) => parts.slice(0, at + 1).join('/'));
  return ignoreRules.findLast(({ pattern }) => names.some((name) => matchesGlob(name, pattern)))?.kept ?? true;
}

/** Returns the files of a package's build, without the files that only an import adds. */
function filesOfBuild(folder) {
  const config = execFileSync(tsc, ['-p', join(root, folder, 'tsconfig.build.json'), '--showConfig'], {
    encoding: 'utf8',
  });
  return JSON.parse(config).files.map((file) => join(folder, file));
}

/** Returns the modules that a file imports, also for types alone. */
function importsOf(path) {
  const found = [];
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (node === null || typeof node !== 'object') return;
    if (/^(Import|Export\w+)Declaration$/.test(node.type) && node.source) found.push(node.source.value);
    if (node.type === 'TsImportType') found.push(node.argument.value);
    if (node.type === 'CallExpression' && node.callee.type === 'Import') {
      const [{ expression } = {}] = node.arguments;
      if (expression?.type === 'StringLiteral') found.push(expression.value);
    }
    for (const value of Object.values(node)) visit(value);
  };
  visit(parseSync(read(path), { syntax: 'typescript', decorators: true, target: 'es2024' }).body);
  return found;
}

const nameOf = (folder) => JSON.parse(read(join(folder, 'package.json'))).name;

const problems = [];
const built = new Set();
for (const folder of builtPackages()) {
  const files = filesOfBuild(folder);
  const seen = new Set(files);
  for (const file of files) if (!isSent(file)) problems.push(`${file} is a part of the build, and not of the image`);
  for (let at = 0; at < files.length; at++) {
    const file = files[at];
    for (const name of importsOf(file)) {
      const [scope, short] = name.split('/');
      if (scope === '@inference-proxy' && !built.has(`${scope}/${short}`))
        problems.push(`${file} imports ${name}, which the image has not built before ${folder}`);
      if (!name.startsWith('.')) continue;
      const imported = relative(root, join(root, dirname(file), name));
      if (!isSent(imported)) problems.push(`${file} imports ${imported}, which is not in the image`);
      else if (!seen.has(imported)) files.push(imported);
      seen.add(imported);
    }
  }
  built.add(nameOf(folder));
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0)
  process.stderr.write('Exclude the test helper in tsconfig.build.json, or add the package to the Dockerfile.\n');
process.exitCode = problems.length > 0 ? 1 : 0;
