// Functions that exhaust or attack the process of an app.
import { spawn } from 'node:child_process';
import { existsSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const CHANNEL = 3;

export const add = ({ a, b = 2 }: { a: number; b?: number }) => a + b;
export const pid = () => process.pid;

/** Returns the process ids of the keeper and of this process. */
export const own_processes = () => [process.ppid, process.pid];

export const leaves_a_child = () => spawn('sleep', ['600'], { stdio: 'ignore' }).pid;

export async function* step_by_step({ folder, n = 3 }: { folder: string; n?: number }) {
  for (let i = 0; i < n; i++) {
    yield i;
    while (!existsSync(join(folder, String(i)))) await pause(10);
  }
}

export function leaks_files() {
  for (;;) openSync('/dev/null', 'r');
}

export async function forges_a_header({ bytes }: { bytes: number }) {
  writeSync(CHANNEL, `{"r":"forged","k":"s","n":1,"b":${bytes}}\n`);
  await pause(600_000);
}

/** Sends more than the run's credit allows. */
export async function forges_items(_params: object, { runId }: { runId: string }) {
  const frame = Buffer.from(`{"r":"${runId}","k":"s","n":1,"b":32768}\n${'x'.repeat(32_768)}`);
  for (let frames = 0; frames < 100; frames++) {
    for (let at = 0; at < frame.length; ) {
      try {
        at += writeSync(CHANNEL, frame, at);
      } catch {
        await pause(1); // the pipe is full
      }
    }
  }
  await pause(600_000);
}

/** Never gives the event loop a turn again. */
export function never_returns() {
  for (;;);
}
