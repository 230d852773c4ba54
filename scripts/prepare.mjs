// The first steps of `npm start` and `npm test`: checks the machine, installs, builds. Has no dependencies, because a fresh clone has no packages.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Node 24, from the package `node`, because the machine's Node may be older. */
export const node = join(root, 'node_modules', '.bin', 'node');
const stamp = join(root, 'node_modules', '.installed');

// Keeps the code that V8 has compiled for the next process: services then start in three quarters of the time.
process.env.NODE_COMPILE_CACHE ??= join(root, '.data', 'compile-cache');

/** The script cannot run. The message is one line with the cause and the next step, and the only output. */
export class Refused extends Error {}

export const say = (text) => process.stdout.write(`${text}\n`);

/** Runs a program in this terminal until it ends. @returns its exit code */
export function run(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: 'inherit', ...options });
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 1)));
  });
}

/** Runs a command of the command line. @returns its exit code */
export const cli = (...args) => run(node, [join(root, 'apps', 'cli', 'bin', 'inference-proxy.mjs'), ...args]);

/** Checks the requirements of a machine: Node 20, npm and Python 3.9. */
export function checkMachine() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 20)
    throw new Refused(`Node 20 or later is needed to start; this is ${process.versions.node}; install a newer Node`);
  const npm = spawnSync('npm', ['--version'], { encoding: 'utf8', shell: process.platform === 'win32' });
  if (npm.status !== 0) throw new Refused('npm is needed and is not on PATH; install npm, which comes with Node');
  checkPython();
}

function checkPython() {
  const question = 'import sys; print(sys.version_info >= (3, 9), sys.version.split()[0])';
  const python = spawnSync('python3', ['-c', question], { encoding: 'utf8' });
  if (python.status !== 0)
    throw new Refused('Python 3.9 or later is needed, as python3 on PATH (apt install python3, brew install python)');
  const [enough, version] = python.stdout.trim().split(' ');
  if (enough !== 'True')
    throw new Refused(`Python 3.9 or later is needed; python3 is ${version}; put a newer one first on PATH`);
}

/** Returns a hash of the files that determine the installation. It hashes contents, because a checkout can change times only. */
function wanted() {
  const hash = createHash('sha256');
  const manifests = ['package-lock.json', 'package.json', '.npmrc', 'test/package.json'];
  for (const folder of ['packages', 'apps'])
    for (const name of readdirSync(join(root, folder))) manifests.push(`${folder}/${name}/package.json`);
  for (const path of manifests)
    if (existsSync(join(root, path))) hash.update(path).update(readFileSync(join(root, path)));
  return hash.digest('hex');
}

/** Installs the packages unless the installation matches the manifests. */
export async function install() {
  const hash = wanted();
  if (existsSync(node) && existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return;
  say('Installing packages (npm install)');
  const code = await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], {
    shell: process.platform === 'win32',
  });
  if (code !== 0) throw new Refused(`npm install failed (exit code ${code}): see above`);
  // npm may have changed the lock file, so the stamp is computed after the installation.
  writeFileSync(stamp, wanted());
}

/** Builds changed files. turbo finds the changes in a fraction of a second. */
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

/**
 * Returns the environment of the service. npm names its cache to every script. The service does not pass this cache on,
 * because the builds of apps may run as another user and side by side.
 */
export function serviceEnvironment() {
  const { npm_config_cache: _, ...env } = process.env;
  return env;
}

/** Runs a script. A refusal prints one line and sets exit code 1. */
export async function main(script) {
  try {
    process.exitCode = await script();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
