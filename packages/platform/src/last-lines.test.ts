// A process ends although nobody takes its last lines; and where somebody does, they come.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';

const LOGGING = new URL('logging.ts', import.meta.url).href;

/** A program that logs `ready` and then `lines` more; when its input ends `stopping`, and it ends as services do. */
const program = (pretty: boolean, lines: number): readonly string[] => [
  '--conditions=source',
  '--input-type=module',
  '--eval',
  `import { createLogger, lastLines } from '${LOGGING}';
  const logger = createLogger({ name: 'test', pretty: ${pretty} });
  logger.info('ready');
  for (let n = 0; n < ${lines}; n++) logger.info({ wide: 'x'.repeat(1000) }, 'line');
  process.stdin.resume().on('end', async () => {
    logger.info('stopping');
    await lastLines(logger);
    process.exit(0);
  });
  process.stderr.write('up');`,
];

/** More than a pipe or a socket holds. */
const FULL = 4_000;

describe.each([
  ['in production', false],
  ['in development', true],
])('%s', (_, pretty) => {
  test('a process whose reader has gone ends', async () => {
    const child = spawn(process.execPath, program(pretty, 0));
    await once(child.stdout, 'data');
    child.stdout.destroy();
    const exited = once(child, 'exit');
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
  });

  test('a process ends whose output is a socket that is full, and somebody has it who does not read', async () => {
    const child = spawn(process.execPath, program(pretty, FULL));
    await once(child.stderr, 'data');
    const exited = once(child, 'exit');
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
    child.stdout.destroy();
  });

  test('a process ends whose output is a pipe that is full, and somebody has it who does not read', async () => {
    // The shell tells how the program ended, and then lets its reader go.
    const script = '{ "$@"; echo "ended $?" >&2; } | { read -r first; read -r never <&3; }';
    const child = spawn('bash', ['-c', script, 'bash', process.execPath, ...program(pretty, FULL)], {
      stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
    });
    let told = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      told += chunk.toString();
    });
    while (!told.includes('up')) await once(child.stderr as NodeJS.ReadableStream, 'data');
    child.stdin?.end();
    while (!told.includes('ended')) await once(child.stderr as NodeJS.ReadableStream, 'data');
    expect(told).toContain('ended 0');
    (child.stdio[3] as NodeJS.WritableStream).end();
    await once(child, 'exit');
  });

  test('the last line of a process is read', async () => {
    const child = spawn(process.execPath, program(pretty, 10));
    child.stdin.end();
    expect((await text(child.stdout)).includes('stopping')).toBe(true);
  });
});
