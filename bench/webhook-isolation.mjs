// Contract 4, "Isolation": the lag of a good receiver with and without many deliveries to a dead host and a hanging host.
import { once } from 'node:events';
import net from 'node:net';
import { call, each, hook, paced, pause, percentiles, receiver, report, round } from './service.mjs';

const bad = Number(process.env.BAD ?? 10_000);
const perSecond = 50;
const seconds = Number(process.env.SECONDS ?? 15);

/** Returns the lags of a good receiver for `seconds`, ms. */
async function goodLags() {
  const lags = [];
  const { url, close } = await receiver(({ timestamp }, at) => lags.push(at - Date.parse(timestamp)));
  await paced(perSecond * seconds, perSecond, (i) => call('echo', { i }, hook(url)));
  while (lags.length < perSecond * seconds) await pause(20);
  close();
  return percentiles(lags);
}

async function listening(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

await goodLags();
const alone = await goodLags();
report({ alone });

const closed = net.createServer();
const deadPort = await listening(closed);
closed.close();
// A receiver has its whole share of attempts only after a first success.
const succeeded = Promise.withResolvers();
const hanging = net.createServer((socket) => socket.on('error', () => {}).resume());
hanging.once('connection', (socket) => {
  socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n', succeeded.resolve));
});
const hangingPort = await listening(hanging);
await call('echo', { i: 0 }, hook(`http://127.0.0.1:${hangingPort}/`));
await succeeded.promise;

for (const [kind, port] of [
  ['dead', deadPort],
  ['hanging', hangingPort],
]) {
  let done = false;
  const flood = each(bad, 32, (i) => call('echo', { i }, hook(`http://127.0.0.1:${port}/`))).then(() => {
    done = true;
  });
  await flood;
  const beside = await goodLags();
  report({ kind, bad, done, beside, p99Ratio: round(beside.p99 / alone.p99), p50Ratio: round(beside.p50 / alone.p50) });
}
process.exit(0);
