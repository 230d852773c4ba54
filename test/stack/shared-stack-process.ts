// The process of the stack that test files share (shared-stack.ts). It ends with the run of jest.
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alive } from '@inference-proxy/supervisor';
import { SHARED_SETTINGS } from './shared-settings.ts';
import { startTestStack } from './test-stack.ts';

const LOOK_EVERY_MS = 500;

const [folder = '', owner = ''] = process.argv.slice(2);
const say = (name: string, text: string): void => {
  writeFileSync(join(folder, `${name}.new`), text);
  renameSync(join(folder, `${name}.new`), join(folder, name));
};

try {
  mkdirSync(join(folder, 'none'));
  const stack = await startTestStack({
    apps: join(folder, 'none'),
    env: SHARED_SETTINGS,
    onLog: (text) => appendFileSync(join(folder, 'log'), text),
  });
  const { port, jwtSecret, redisUrl, appsDir, marksDir } = stack;
  say('ready', JSON.stringify({ port, jwtSecret, redisUrl, appsDir, marksDir }));
  const look = setInterval(async () => {
    if (alive(Number(owner))) return;
    clearInterval(look);
    await stack.stop().catch(() => {});
    rmSync(folder, { recursive: true, force: true });
    process.exit(0);
  }, LOOK_EVERY_MS);
} catch (error) {
  say('failed', (error as Error).message);
}
