// What `npm start` and `npm test` do first: check the machine, install, build. Plain JavaScript without dependencies: on a fresh clone there is nothing else yet.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Node 24, from the package `node`: the machine's own may be older. */
export const node = join(root, 'node_modules', '.bin', 'node');
const stamp = join(root, 'node_modules', '.installed');

// What V8 has compiled is kept for the next process: services start in three quarters of the time.
process.env.NODE_COMPILE_CACHE ??= join(root, '.data', 'compile-cache');

/** One line that says what is wrong and what to do; nothing else is printed. */
export class Refused extends Error {}

export const say = (text) => process.stdout.write(`${text}\n`);

/** Runs a program to its end with our terminal. @returns its exit code */
export function run(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: 'inherit', ...options });
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 1)));
  });
}

/** Node 20, npm and Python 3.9 are what we ask of a machine. */
export function checkMachine() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 20) throw new Refused(`Node 20 or later is needed to start; this is ${process.versions.node}`);
  const npm = spawnSync('npm', ['--version'], { encoding: 'utf8', shell: process.platform === 'win32' });
  if (npm.status !== 0) throw new Refused('npm is needed and is not on PATH');
  checkPython();
}

export function checkPython() {
  const question = 'import sys; print(sys.version_info >= (3, 9), sys.version.split()[0])';
  const python = spawnSync('python3', ['-c', question], { encoding: 'utf8' });
  if (python.status !== 0)
    throw new Refused('Python 3.9 or later is needed, as python3 on PATH (apt install python3, brew install python)');
  const [enough, version] = python.stdout.trim().split(' ');
  if (enough !== 'True')
    throw new Refused(`Python 3.9 or later is needed; python3 is ${version}; put a newer one first on PATH`);
}

/** A hash of what decides what is installed: contents, because a checkout changes times and not always contents. */
function wanted() {
  const hash = createHash('sha256');
  const manifests = ['package-lock.json', 'package.json', '.npmrc', 'test/package.json'];
  for (const folder of ['packages', 'apps'])
    for (const name of readdirSync(join(root, folder))) manifests.push(`${folder}/${name}/package.json`);
  for (const path of manifests)
    if (existsSync(join(root, path))) hash.update(path).update(readFileSync(join(root, path)));
  return hash.digest('hex');
}

/** Installs unless what is installed is what the manifests ask for. */
export async function install() {
  const hash = wanted();
  if (existsSync(node) && existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return;
  say('Installing packages (npm install)');
  const code = await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], {
    shell: process.platform === 'win32',
  });
  if (code !== 0) throw new Refused(`npm install failed (exit code ${code}): see above`);
  // npm may have written the lock: the stamp is of what it left.
  writeFileSync(stamp, wanted());
}

/** Builds what has changed; turbo knows what, in a fraction of a second. */
export async function build() {
  say('Building');
  const turbo = join(root, 'node_modules', '.bin', 'turbo');
  const env = {
    ...process.env,
    PATH: `${dirname(node)}:${process.env.PATH}`,
    TURBO_TELEMETRY_DISABLED: '1',
    TURBO_NO_UPDATE_NOTIFIER: '1',
  };
  const quiet = spawn(turbo, ['run', 'build', '--output-logs=errors-only', '--log-prefix=none'], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks = [];
  for (const stream of [quiet.stdout, quiet.stderr]) stream.on('data', (chunk) => chunks.push(chunk));
  const code = await new Promise((resolve, reject) => {
    quiet.once('error', reject);
    quiet.once('close', resolve);
  });
  if (code !== 0) {
    process.stderr.write(Buffer.concat(chunks));
    throw new Refused('The build failed: see above');
  }
}

/** Runs a script: a refusal is one line and exit code 1. */
export async function main(script) {
  try {
    process.exitCode = await script();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
