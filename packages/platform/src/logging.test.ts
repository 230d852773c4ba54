// Contract 6: log lines of a logger, and of real processes at their end.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { createLogger, NestLogger } from './logging.ts';

function lines() {
  const written: string[] = [];
  return { written, destination: { write: (line: string) => void written.push(line) } };
}

test('credentials are hidden wherever headers are logged', () => {
  const { written, destination } = lines();
  const logger = createLogger({ name: 'test', destination });
  const headers = { authorization: 'Bearer hunter2', cookie: 'hunter2', 'x-webhook-secret': 'hunter2', accept: '*/*' };
  logger.info({ headers }, 'one');
  logger.info({ req: { headers } }, 'two');
  logger.info(headers, 'three');
  expect(written).toHaveLength(3);
  expect(written.join('')).not.toContain('hunter2');
  expect(written.join('')).toContain('*/*');
});

test('lines are JSON in production and plain text in development', async () => {
  const people = program(`createLogger({ name: 'test', pretty: true }).info({ run: 1 }, 'ended');`);
  expect(await text(people.stdout)).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: ended \{"run":1\}\n$/);
  const json = lines();
  createLogger({ name: 'test', destination: json.destination }).info({ run: 1 }, 'ended');
  expect(JSON.parse(json.written.join(''))).toMatchObject({ name: 'test', run: 1, msg: 'ended' });
});

test('a line of a traceback has no fields in development, and all of them in production', async () => {
  const fields = `{ app: 'chat', traceback: true }`;
  const people = program(`createLogger({ name: 'test', pretty: true }).error(${fields}, 'KeyError: 1');`);
  expect(await text(people.stdout)).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] ERROR: KeyError: 1\n$/);
  const json = lines();
  createLogger({ name: 'test', destination: json.destination }).error({ app: 'chat', traceback: true }, 'KeyError: 1');
  expect(JSON.parse(json.written.join(''))).toMatchObject({ level: 50, app: 'chat', msg: 'KeyError: 1' });
});

test('Nest’s start-up messages have the level debug, and its errors the level error', () => {
  const { written, destination } = lines();
  const nest = new NestLogger(createLogger({ name: 'test', destination }));
  nest.log('Mapped {/healthz}', 'RouterExplorer');
  expect(written).toHaveLength(0);
  nest.error(new Error('no provider'), 'stack', 'Injector');
  expect(JSON.parse(written.join(''))).toMatchObject({ level: 50, err: { message: 'no provider' } });
});

/** Returns the arguments of a program with a production logger named `logger`. */
const argumentsOf = (code: string): readonly string[] => [
  '--conditions=source',
  '--input-type=module',
  '-e',
  `import { createLogger } from ${JSON.stringify(join(import.meta.dirname, 'logging.ts'))};
   const logger = createLogger({ name: 'test' });
   const many = () => { for (let n = 1; n <= 2000; n++) logger.info({ n }, 'line'); };
   ${code}`,
];

const program = (code: string) => spawn(process.execPath, argumentsOf(code), { stdio: ['pipe', 'pipe', 'ignore'] });

/** Returns the lines that such a program writes into a pipe. The reader of the pipe only copies them into a file. */
async function piped(code: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'logging-'));
  const file = join(folder, 'lines');
  const script = 'file=$1; shift; "$@" 2>/dev/null | cat >"$file"';
  const child = spawn('bash', ['-c', script, 'bash', file, process.execPath, ...argumentsOf(code)], {
    stdio: 'ignore',
  });
  await once(child, 'exit');
  const lines = await readFile(file, 'utf8');
  await rm(folder, { recursive: true });
  return lines;
}

/** Returns the numbers of the lines, in order. */
const numbers = (output: string): number[] =>
  output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { n?: number })
    .flatMap(({ n }) => n ?? []);

test.each([
  ['at its end', 'many();'],
  ['by process.exit', 'many(); process.exit(0);'],
  ['in the midst of a write', 'many(); setTimeout(() => { many(); process.exit(0); }, 50);'],
  [
    'on SIGTERM',
    `process.on('SIGTERM', () => { many(); process.exit(0); }); process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000);`,
  ],
  [
    'by an uncaught error',
    `process.on('uncaughtException', (err) => { logger.fatal({ err }, 'no'); process.exit(1); }); many(); throw new Error('no');`,
  ],
  ['by an error without a handler', `many(); throw new Error('no');`],
])('no line is lost when the process ends %s', async (_, code) => {
  const found = numbers(await piped(code));
  expect(found.length % 2000).toBe(0);
  expect(found.length).toBeGreaterThan(0);
  expect(found.slice(0, 2000)).toEqual(Array.from({ length: 2000 }, (_line, at) => at + 1));
});

test('a single line is written within a second, although it does not fill a batch', async () => {
  // A second is twenty turns of this process. If the process stands still, the turns stand still too.
  const child = program(`
    const { default: fs } = await import('node:fs');
    const { writeSync } = fs;
    let written = false;
    fs.writeSync = (...args) => {
      written = true;
      return writeSync(...args);
    };
    logger.info('alone');
    let turns = 0;
    setInterval(() => {
      turns += 1;
      if (turns === 20) process.exit(written ? 0 : 1);
    }, 50);`);
  const [[code], output] = await Promise.all([once(child, 'exit'), text(child.stdout)]);
  expect(JSON.parse(output)).toMatchObject({ msg: 'alone' });
  expect(code).toBe(0);
});

test('an output without a reader costs bounded memory, and the next read reports the number of dropped lines', async () => {
  const child = program(`
    const wide = 'x'.repeat(64 * 1024);
    for (let n = 1; n <= 1000; n++) logger.info({ wide }, 'line');
    process.stdin.resume();`);
  let lines = 0;
  let logged: { readonly lines?: number; readonly msg: string } | undefined;
  for await (const line of createInterface(child.stdout)) {
    logged = JSON.parse(line);
    if (logged?.lines !== undefined) break;
    lines += 1;
  }
  child.stdin.end();
  expect(lines).toBeLessThan(400);
  expect(logged).toMatchObject({ level: 40, lines: 1000 - lines, msg: expect.stringContaining('dropped') });
});
