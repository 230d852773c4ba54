// A part of `npm run lint`: fails if a regular expression of this repository can take more than linear time on some text.
// Texts from outside (headers, URLs, manifests, events of web servers, frames) reach most of the code, so every expression is checked.
// Arguments: files and folders to check; default: `apps` and `packages`.
import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from '@swc/core';

// The other backends are programs for certain machines. This backend gives the same result on every machine.
process.env.RECHECK_BACKEND = 'pure';
const require = createRequire(import.meta.url);
const { checkSync } = require('recheck');

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** The safe expressions of earlier runs, because one check takes 10 to 2000 ms. */
const memory = join(root, 'node_modules', '.cache', `safe-expressions-${require('recheck/package.json').version}.json`);
const CHECK_MS = 30_000;

const SOURCES = '**/*.{ts,mts,js,mjs,py}';
const SKIPPED = ['node_modules', 'dist', 'testing', '.venv', '__pycache__'];
const isTest = (path) => /\.test\.[a-z]+$/.test(path) || path.includes('/test_');

function filesIn(path) {
  if (statSync(path).isFile()) return [path];
  const files = globSync(SOURCES, { cwd: path, exclude: (name) => SKIPPED.includes(name) });
  return files.map((file) => join(path, file)).filter((file) => !isTest(file));
}

/** Returns a file's expressions: `{pattern, flags}`, or `{unreadable}` if the expression only exists at run time. */
const expressionsIn = (path, source) => (path.endsWith('.py') ? pythonExpressions(source) : scriptExpressions(source));

function scriptExpressions(source) {
  const found = [];
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (node === null || typeof node !== 'object') return;
    if (node.type === 'RegExpLiteral') found.push({ pattern: node.pattern, flags: node.flags });
    const isCall = node.type === 'NewExpression' || node.type === 'CallExpression';
    if (isCall && node.callee.value === 'RegExp') found.push({ unreadable: 'RegExp(' });
    Object.values(node).forEach(visit);
  };
  visit(parseSync(source, { syntax: 'typescript', decorators: true, target: 'es2024' }));
  return found;
}

const PYTHON_CALL = /\bre\.(?:compile|search|match|fullmatch|split|findall|finditer|subn?)\(/g;
const PYTHON_TEXT = /^\s*r(?:"([^"\n]*)"|'([^'\n]*)')/;

function pythonExpressions(source) {
  return [...source.matchAll(PYTHON_CALL)].map(({ 0: call, index }) => {
    const text = PYTHON_TEXT.exec(source.slice(index + call.length, index + call.length + 1000));
    if (!text) return { unreadable: call };
    // Translates Python's \A and \Z to ^ and $ of JavaScript.
    return {
      pattern: (text[1] ?? text[2]).replaceAll('\\A', '^').replaceAll('\\Z', '$'),
      flags: '',
      found: text[0].trim(),
    };
  });
}

function remembered() {
  try {
    return new Set(JSON.parse(readFileSync(memory, 'utf8')));
  } catch {
    return new Set();
  }
}

const safe = remembered();

/** Returns the fault of an expression, or nothing if the expression takes linear time on every text. */
function wrongWith({ pattern, flags, unreadable }) {
  if (unreadable)
    return 'is built at run time, so this lint cannot check it: write it as a literal, or compare by hand';
  const name = `/${pattern}/${flags}`;
  if (safe.has(name)) return undefined;
  const { status, complexity, attack, error } = checkSync(pattern, flags, { timeout: CHECK_MS, randomSeed: 1 });
  if (status === 'safe') {
    safe.add(name);
    return undefined;
  }
  if (status === 'unknown')
    return `could not be checked (${error?.kind}): write a simpler expression, or parse by hand`;
  return `takes ${complexity.summary} time, for example on ${attack.pattern}: parse by hand, in linear time`;
}

const paths = process.argv.slice(2);
const files = (paths.length > 0 ? paths : [join(root, 'apps'), join(root, 'packages')]).flatMap(filesIn);
let wrong = 0;
for (const file of files) {
  const source = readFileSync(file, 'utf8');
  for (const expression of expressionsIn(file, source)) {
    const why = wrongWith(expression);
    if (why === undefined) continue;
    wrong += 1;
    const text = expression.unreadable ?? expression.found ?? `/${expression.pattern}/${expression.flags}`;
    const line = source.slice(0, source.indexOf(text)).split('\n').length;
    console.error(`${file}:${line}: ${text} ${why}.`);
  }
}
mkdirSync(dirname(memory), { recursive: true });
writeFileSync(memory, JSON.stringify([...safe]));
process.exitCode = wrong === 0 ? 0 : 1;
