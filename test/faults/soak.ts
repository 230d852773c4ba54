// `npm run soak`: everything that can go wrong goes wrong at random moments for SOAK_MINUTES (20), with the leases and times of production, behind
// nginx where there is one. Arguments are names of faults, to have those alone. SOAK_SEED repeats the order and the victims of an earlier run.
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

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** The same numbers for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Names without end, all of them before any comes again. */
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
  // Ctrl-C: what has gone wrong so far is judged all the same.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      stopped = true;
    });
  try {
    const from = performance.now();
    const over = (part: number): boolean => stopped || performance.now() - from > minutes * MINUTE_MS * part;
    const memory = [await memoryOf(place)];
    const episodes: Episode[] = [];
    let failure: Error | undefined;
    for (const name of shuffledForEver(names.length > 0 ? names : [...Object.keys(faults), RESTART], random)) {
      if (over(1)) break;
      if (memory.length === 1 && over(1 / 2)) memory.push(await memoryOf(place));
      await sleep(random() * LONGEST_PAUSE_MS);
      try {
        episodes.push(name === RESTART ? await restarted(place) : await episode(place, name, options));
      } catch (error) {
        failure = new Error(`${name}: ${(error as Error).message}`);
        break;
      }
      say(lineOf(episodes.at(-1) as Episode, episodes.at(-2), place.load, []).join('  '));
    }
    memory.push(await memoryOf(place));
    const history = await place.settle();
    const wrong = faultsOf(history);
    if (failure) wrong.push({ is: 'wrong', text: `service did not return: ${failure.message}` });
    report({ episodes, memory, history, wrong });
    return wrong.length === 0 ? 0 : 1;
  } finally {
    await place.close();
  }
}

interface Soaked {
  readonly episodes: readonly Episode[];
  readonly memory: readonly Readonly<Record<string, string>>[];
  readonly history: History;
  readonly wrong: readonly Wrong[];
}

function report({ episodes, memory, history, wrong }: Soaked): void {
  say(`\n${tableOf([HEADINGS, ...episodes.map((one, at) => lineOf(one, episodes[at - 1], history, wrong))])}`);
  const times = memory.length > 2 ? ['at the start', 'in the middle', 'at the end'] : ['at the start', 'at the end'];
  const parts = Object.keys(memory[0] ?? {}).map((name) => [name, ...memory.map((sizes) => sizes[name] ?? '')]);
  say(`\n${tableOf([['memory', ...times], ...parts])}`);
  say(`\n${history.seen.length} calls, ${history.delivered.length} deliveries, ${wrong.length} wrong`);
  for (const { is, text } of wrong) say(`${is}: ${text}`);
}

const RESTART = 'all are restarted, one after the other';

/** No trouble to excuse anything: not one call may fail. */
async function restarted(place: Place): Promise<Episode> {
  const from = performance.now();
  await restartAll(place);
  const overAt = performance.now();
  const back = await place.recovered(overAt);
  return { name: RESTART, from, to: performance.now(), overAt, ...back };
}

process.exitCode = await soak(process.argv.slice(2));
