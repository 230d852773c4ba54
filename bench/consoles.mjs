// CPU of a gateway while consoles are open and nothing happens. Each console asks for apps, statistics and runs every five seconds, with the
// tag of the last answer, as apps/console does at its fastest pace.
//
//   node bench/consoles.mjs <url> <token> <project> <pid of the gateway> [consoles] [seconds]
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const [url, token, project, pid, consoles = '20', seconds = '60'] = process.argv.slice(2);
const PATHS = ['apps', 'stats?window=3600', 'runs?limit=50'];
const EVERY_MS = 5_000;
/** Clock ticks of a second on Linux. */
const TICKS = 100;

/** Returns the CPU time of the gateway's process in seconds. */
function cpuOf() {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13);
  return (Number(user) + Number(system)) / TICKS;
}

const statuses = {};
const end = performance.now() + Number(seconds) * 1000;

async function openConsole() {
  const tags = new Map();
  await pause(Math.random() * EVERY_MS);
  while (performance.now() < end) {
    for (const path of PATHS) {
      const headers = { authorization: `Bearer ${token}`, 'if-none-match': tags.get(path) ?? '""' };
      const answer = await fetch(`${url}/v4/${project}/${path}`, { headers });
      tags.set(path, answer.headers.get('etag'));
      statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
      await answer.arrayBuffer();
    }
    await pause(EVERY_MS);
  }
}

const before = cpuOf();
await Promise.all([pause(Number(seconds) * 1000), ...Array.from({ length: Number(consoles) }, openConsole)]);
const percent = ((cpuOf() - before) / Number(seconds)) * 100;
console.log(JSON.stringify({ consoles: Number(consoles), percent_of_a_core: Number(percent.toFixed(2)), statuses }));
