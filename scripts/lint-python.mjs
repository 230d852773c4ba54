// Checks the style of the harness's Python with ruff, or formats it with `--write`. ruff comes from npm as WebAssembly, so that neither
// PyPI nor a compiler for this machine is needed. Editors with ruff read the same settings: apps/worker/harness/ruff.toml.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PositionEncoding, Workspace } from '@astral-sh/ruff-wasm-nodejs';
import { parse } from 'smol-toml';
import { root } from './prepare.mjs';

const HARNESS = 'apps/worker/harness';
const settings = parse(readFileSync(join(root, HARNESS, 'ruff.toml'), 'utf8'));
const { 'per-file-ignores': ignoredBelow, ...lint } = settings.lint;

/** Checkers by the rules that they ignore, because making one takes longer than checking a file. */
const checkers = new Map();

/** Returns a checker without the rules that the settings ignore below a folder (`folder/*`). */
function checkerOf(path) {
  const ignored = Object.entries(ignoredBelow).filter(([pattern]) => path.startsWith(pattern.replace('*', '')));
  const ignore = [...lint.ignore, ...ignored.flatMap(([, rules]) => rules)];
  const key = ignore.join();
  const checker =
    checkers.get(key) ?? new Workspace({ ...settings, lint: { ...lint, ignore } }, PositionEncoding.Utf16);
  checkers.set(key, checker);
  return checker;
}

const write = process.argv.includes('--write');
const list = ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate', '--', '*.py'];
const paths = execFileSync('git', list, { cwd: join(root, HARNESS), encoding: 'utf8' })
  .trim()
  .split('\n');
const problems = [];
for (const path of paths) {
  const file = join(root, HARNESS, path);
  const checker = checkerOf(path);
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') continue; // deleted, and not committed yet
    throw error;
  }
  const formatted = checker.format(text);
  if (formatted !== text && write) writeFileSync(file, formatted);
  if (formatted !== text && !write) problems.push(`${HARNESS}/${path} is not formatted: run npm run format`);
  for (const { code, message, start_location: start } of checker.check(write ? formatted : text))
    problems.push(`${HARNESS}/${path}:${start.row}:${start.column} ${code} ${message}`);
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exitCode = problems.length > 0 ? 1 : 0;
