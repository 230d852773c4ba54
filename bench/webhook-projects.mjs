// Contract 4, "Isolation": the lag of one project's deliveries while another project delivers to receivers that hang.
import { once } from 'node:events';
import net from 'node:net';
import { call, each, hook, paced, pause, percentiles, receiver, report, round } from './service.mjs';

const RECEIVERS = 120;
const DELIVERIES = 20;
const NEIGHBOUR = 'neighbour';
const perSecond = 20;
const seconds = Number(process.env.SECONDS ?? 20);

/** Returns the milliseconds from a run's end to its delivery, for `seconds`. */
async function lagsOfNeighbour() {
  const lags = [];
  const { url, close } = await receiver(({ timestamp }, at) => lags.push(at - Date.parse(timestamp)));
  await paced(perSecond * seconds, perSecond, (i) => call('echo', { i }, hook(url), {}, NEIGHBOUR));
  while (lags.length < perSecond * seconds) await pause(20);
  close();
  return percentiles(lags);
}

async function hangingReceiver() {
  const server = net.createServer((socket) => socket.on('error', () => {}).resume());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}/`;
}

await lagsOfNeighbour();
const alone = await lagsOfNeighbour();
report({ alone });
const hanging = await Promise.all(Array.from({ length: RECEIVERS }, hangingReceiver));
await each(RECEIVERS * DELIVERIES, 32, (i) => call('echo', { i }, hook(hanging[i % RECEIVERS])));
const attacked = await lagsOfNeighbour();
report({ attacked, ratio: round(attacked.p99 / alone.p99) });
process.exit(0);
