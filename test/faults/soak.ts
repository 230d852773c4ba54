// `npm run soak`: every fault at random moments for SOAK_MINUTES (20), with the leases and times of production, behind
// nginx if it is installed. Arguments are names of faults to run alone. SOAK_SEED repeats the order and the victims of an earlier run.
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { faultsOf, type Wrong } from './checker.ts';
import { episode } from './episode.ts';
import { type FaultOptions, faults, restartAll } from './faults.ts';
import { type Episode, HEADINGS, lineOf, tableOf } from './figures.ts';
import type { History } from './history.ts';
import { memoryOf } from './memory.ts';
import { hasNginx, startNginx } from './nginx.ts';
import { Place } from './place.ts';

const MINUTE_MS = 60_000;
const LONGEST_PAUSE_MS = 3000;
/** A limit against hanging only: callers give up after minutes, and each run is looked up. It is shorter if the service did not recover. */
const LONGEST_SETTLING_MS = { whole: 15 * MINUTE_MS, broken: 5 * MINUTE_MS };

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Returns the same numbers for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns names without end. Every name comes before any name repeats. */
function* shuffledForEver(names: readonly string[], random: () => number): Generator<string> {
  while (true) {
    const left = [...names];
    while (left.length > 0) yield left.splice(Math.floor(random() * left.length), 1)[0] as string;
  }
}

async function soak(names: readonly string[]): Promise<number> {
  const minutes = Number(process.env.SOAK_MINUTES ?? 20);
  const seed = Number(process.env.SOAK_SEED ?? Date.now() % 2 ** 31);
  if (!(minutes > 0) || !Number.isInteger(seed)) throw new Error('SOAK_MINUTES and SOAK_SEED are numbers');
  const random = randomFrom(seed);
  const options: FaultOptions = { pick: (of) => of[Math.floor(random() * of.length)] as never, long: true };
  const nginx = await hasNginx();
  say(`${minutes} minutes with SOAK_SEED=${seed}, behind ${nginx ? 'nginx' : 'the supervisor’s balancer'}`);
  const place = await Place.open(nginx ? { front: startNginx } : {});
  let stopped = false;
  // After Ctrl-C the soak still judges the calls so far.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      stopped = true;
    });
  try {
    const from = performance.now();
    const over = (part: number): boolean => stopped || performance.now() - from > minutes * MINUTE_MS * part;
    const memory: Memory = { 'at the start': await memoryOf(place) };
    const episodes: Episode[] = [];
    let failure: Error | undefined;
    for (const name of shuffledForEver(names.length > 0 ? names : [...Object.keys(faults), RESTART], random)) {
      if (over(1)) break;
      if (over(1 / 2)) memory['in the middle'] ??= await memoryOf(place);
      await sleep(random() * LONGEST_PAUSE_MS);
      try {
        episodes.push(name === RESTART ? await restarted(place) : await episode(place, name, options));
      } catch (error) {
        failure = new Error(`${name}: ${(error as Error).message}`);
        break;
      }
      say(lineOf(episodes.at(-1) as Episode, { before: episodes.at(-2) }, place.load, []).join('  '));
    }
    // If the service did not recover, a part may be gone for good.
    if (!failure) memory['at the end'] = await memoryOf(place);
    const { history, wrong } = await judged(place, LONGEST_SETTLING_MS[failure ? 'broken' : 'whole']);
    if (failure) wrong.push({ is: 'wrong', text: `service did not return: ${failure.message}` });
    report({ episodes, memory, history, wrong });
    if (wrong.length === 0) return 0;
    const path = join(tmpdir(), `soak-${seed}.log`);
    await writeFile(path, place.stack.logs());
    say(`\nwhat its parts have logged: ${path}`);
    return 1;
  } finally {
    await place.close();
  }
}

/** Judges all calls. If the store is gone for good, its absence is the fault that is reported. */
async function judged(place: Place, limitMs: number): Promise<{ history: History; wrong: Wrong[] }> {
  const late = new AbortController();
  try {
    const history = await Promise.race([
      place.settle(),
      sleep(limitMs, undefined, { signal: late.signal }).then(() => {
        throw new Error('it took too long');
      }),
    ]);
    return { history, wrong: faultsOf(history) };
  } catch (error) {
    const text = `the fate of the calls is unknown: ${(error as Error).message}`;
    return { history: place.soFar(), wrong: [{ is: 'wrong', text }] };
  } finally {
    late.abort();
  }
}

/** Time, process and memory. */
type Memory = Record<string, Readonly<Record<string, string>>>;

interface Soaked {
  readonly episodes: readonly Episode[];
  readonly memory: Memory;
  readonly history: History;
  readonly wrong: readonly Wrong[];
}

function report({ episodes, memory, history, wrong }: Soaked): void {
  const lines = episodes.map((one, at) =>
    lineOf(one, { before: episodes[at - 1], after: episodes[at + 1] }, history, wrong),
  );
  say(`\n${tableOf([HEADINGS, ...lines])}`);
  const times = Object.keys(memory);
  const parts = Object.keys(memory['at the start'] ?? {}).map((name) => [
    name,
    ...times.map((time) => memory[time]?.[name] ?? ''),
  ]);
  say(`\n${tableOf([['memory', ...times], ...parts])}`);
  say(`\n${history.seen.length} calls, ${history.delivered.length} deliveries, ${wrong.length} wrong`);
  for (const { is, text } of wrong) say(`${is}: ${text}`);
}

const RESTART = 'all are restarted, one after the other';

/** No episode excuses a failure here: no call may fail. */
async function restarted(place: Place): Promise<Episode> {
  const from = performance.now();
  await restartAll(place);
  const overAt = performance.now();
  const back = await place.recovered(overAt);
  return { name: RESTART, from, to: performance.now(), overAt, ...back };
}

// Callers of a service that never recovered would continue to call.
process.exit(await soak(process.argv.slice(2)));
