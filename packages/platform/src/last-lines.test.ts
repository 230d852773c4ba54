// Contract 6: a process ends although its output has no reader. If the output is read, the last lines arrive.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';

const LOGGING = new URL('logging.ts', import.meta.url).href;

/** Returns a program that logs `ready` and `lines` more lines. At the end of its input it logs `stopping` and ends like a service. */
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
  test('a process ends after its reader has closed the output', async () => {
    const child = spawn(process.execPath, program(pretty, 0));
    await once(child.stdout, 'data');
    child.stdout.destroy();
    const exited = once(child, 'exit');
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
  });

  test('a process ends although its output is a full socket whose reader does not read', async () => {
    const child = spawn(process.execPath, program(pretty, FULL));
    await once(child.stderr, 'data');
    const exited = once(child, 'exit');
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
    child.stdout.destroy();
  });

  test('a process ends although its output is a full pipe whose reader does not read', async () => {
    // The shell reports the program's exit code and then ends the pipe's reader.
    const script = '{ "$@"; echo "ended $?" >&2; } | { read -r first; read -r never <&3; }';
    const child = spawn('bash', ['-c', script, 'bash', process.execPath, ...program(pretty, FULL)], {
      stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
    });
    while (!printed.includes('up')) await once(child.stderr as NodeJS.ReadableStream, 'data');
    child.stdin?.end();
    while (!printed.includes('ended')) await once(child.stderr as NodeJS.ReadableStream, 'data');
    expect(printed).toContain('ended 0');
    (child.stdio[3] as NodeJS.WritableStream).end();
    await once(child, 'exit');
  });

  test('the last line of a process is read', async () => {
    const child = spawn(process.execPath, program(pretty, 10));
    child.stdin.end();
    expect((await text(child.stdout)).includes('stopping')).toBe(true);
  });
});
