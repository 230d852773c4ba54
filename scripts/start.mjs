// `npm start`: the whole service on this machine. Installs and builds what is missing, then hands over to the supervisor (test/stack).
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { build, checkMachine, install, main, node, root } from './prepare.mjs';

const typedAt = Date.now();

/** Runs the supervisor, passing signals on, until it has ended. */
function supervise() {
  const program = join(root, 'test', 'dist', 'stack', 'main.js');
  // With a channel: should this process be killed, the supervisor notices and stops everything.
  const child = spawn(node, ['--enable-source-maps', program, ...process.argv.slice(2)], {
    cwd: root,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, START_TYPED_AT: String(typedAt) },
  });
  // A terminal's Ctrl-C reaches the supervisor by itself; it takes two at once for one.
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
