// `npm start`: runs the whole service on this machine. Installs and builds if needed, then starts the supervisor.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { build, checkMachine, install, main, node, root, serviceEnvironment } from './prepare.mjs';

const typedAt = Date.now();

/** Runs the supervisor and forwards signals. Resolves with the exit code. */
function supervise() {
  const program = join(root, 'packages', 'supervisor', 'dist', 'main.js');
  // The IPC channel closes if this process is killed. The supervisor then stops all parts.
  const child = spawn(node, ['--enable-source-maps', program, ...process.argv.slice(2)], {
    cwd: root,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...serviceEnvironment(), START_TYPED_AT: String(typedAt) },
  });
  // A terminal's Ctrl-C also reaches the supervisor directly. The supervisor counts the two signals as one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

await main(async () => {
  checkMachine();
  await install();
  await build();
  return supervise();
});
