// A process ends although nobody takes its last lines; and where somebody does, they come.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';

const LOGGING = new URL('logging.ts', import.meta.url).href;

/** A process that logs `ready`, and when its input ends `stopping`; then it ends as services do. */
const process_ = () =>
  spawn(process.execPath, [
    '--input-type=module',
    '--eval',
    `import { createLogger, lastLines } from '${LOGGING}';
    const logger = createLogger({ name: 'test' });
    logger.info('ready');
    process.stdin.resume().on('end', async () => {
      logger.info('stopping');
      await lastLines(logger);
      process.exit(0);
    });`,
  ]);

test('a process whose reader has gone ends', async () => {
  const child = process_();
  await once(child.stdout, 'data');
  child.stdout.destroy();
  const exited = once(child, 'exit');
  child.stdin.end();
  expect(await exited).toEqual([0, null]);
});

test('the last line of a process is read', async () => {
  const child = process_();
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  child.stdin.end();
  await once(child, 'close');
  expect(text).toContain('stopping');
});
