// Functions that print.
import { execFileSync, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

export const add = ({ a, b = 2 }: { a: number; b?: number }) => a + b;

export function* prints() {
  console.log('to stdout');
  console.error('to stderr');
  process.stdout.write(Buffer.from('raw\n'));
  execFileSync('echo', ['from a child'], { stdio: 'inherit' });
  yield 1;
  yield 2;
  process.stdout.write('no newline');
}

function says(who: string, i: number) {
  console.log(who, 'prints', i);
  console.warn('%s logs %s', who, i);
}

export async function says_much({ name, n }: { name: string; n: number }) {
  for (let i = 0; i < n; i++) {
    says(name, i);
    if (i % 7 === 0) await pause(1);
  }
  return n;
}

export async function says_much_async({ name, n }: { name: string; n: number }) {
  const part = async (which: string) => {
    for (let i = 0; i < n / 2; i++) {
      says(`${name} ${which}`, i);
      await pause(0);
    }
  };
  await Promise.all([part('a'), part('b')]);
  return n;
}

export async function* streams_and_says({ name, n }: { name: string; n: number }) {
  for (let i = 0; i < n; i++) {
    console.log(name, 'prints', i);
    yield i;
    console.error('%s logs %s', name, i);
  }
}

/** Prints by a callback, by promises that all runs start, and by a timer that outlives the run until the file exists. */
export async function says_by_others({ name, path }: { name: string; path: string }) {
  await new Promise<void>((resolve) => {
    process.nextTick(() => setImmediate(() => resolve(console.log(name, 'own thread'))));
  });
  for (let i = 0; i < 20; i++) await Promise.resolve().then(() => console.log(name, 'pool', i));
  const late = setInterval(() => {
    if (!existsSync(path)) return;
    console.log(name, 'late');
    clearInterval(late);
  }, 10);
}

export async function says_in_a_thread({ name }: { name: string }, { log }: { log: (...values: unknown[]) => void }) {
  const events = new EventEmitter();
  setImmediate(() => events.emit('said'));
  await once(events, 'said');
  console.log(name, 'to_thread');
  log(name, 'executor');
}

/** Prints at least `lines` lines, and until the file exists. */
export async function prints_a_flood({ lines, path }: { lines: number; path: string }) {
  let printed = 0;
  while (printed < lines || !existsSync(path)) {
    for (let i = 0; i < 1000; i++) console.log('a line long enough to outrun what sends them '.repeat(10), printed++);
    await pause(0);
  }
  console.log('last');
  return printed + 1;
}

async function child(command: string, args: string[], seconds: number) {
  const started = spawn(command, args, { stdio: 'inherit' });
  await pause(seconds * 1000);
  started.kill('SIGKILL');
  await once(started, 'exit');
}
export const child_prints_a_flood = ({ seconds }: { seconds: number }) => child('yes', [], seconds);
export const child_prints_one_line = ({ seconds }: { seconds: number }) => child('cat', ['/dev/zero'], seconds);

export function prints_one_line({ megabytes }: { megabytes: number }) {
  console.log('x'.repeat(megabytes * 1_000_000));
}
