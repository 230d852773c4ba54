// Contract 5: bytes in Redis for an ended call, a kept item, a delivered and a parked delivery. REDIS_URL is that of the services.
import { once } from 'node:events';
import net from 'node:net';
import { redisAddress } from '@inference-proxy/platform';
import { Redis } from 'ioredis';
import { call, cpuSeconds, each, ended, hook, pause, privateBytes, receiver, report, round } from './service.mjs';

const redis = new Redis(redisAddress(process.env.REDIS_URL ?? ''));
const used = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);

/** Prints the bytes that `work` added permanently, divided by `n`. */
async function bytesEach(what, n, work) {
  await pause(2000);
  const before = await used();
  await work();
  await pause(3000);
  report({ what, n, bytesEach: round(((await used()) - before) / n) });
}

await each(2000, 32, (i) => call('echo', { i }));
await bytesEach('ended small call', 10_000, () => each(10_000, 32, (i) => call('echo', { i })));
await bytesEach('kept item of 64 bytes', 200_000, () => ended('items', { n: 200_000, size: 64 }));

let delivered = 0;
const { url } = await receiver(() => delivered++);
const promised = 5000;
await bytesEach('promised call, no webhook', promised, () =>
  each(promised, 32, (i) => call('echo', { i }, '?async=true')),
);
await bytesEach('promised call, delivered', promised, async () => {
  await each(promised, 32, (i) => call('echo', { i }, hook(url)));
  while (delivered < promised) await pause(50);
});

const closed = net.createServer().listen(0, '127.0.0.1');
await once(closed, 'listening');
const { port } = closed.address();
closed.close();
const parked = 10_000;
await bytesEach('promised call, parked (dead host)', parked, async () => {
  await each(parked, 32, (i) => call('echo', { i }, hook(`http://127.0.0.1:${port}/`)));
  await pause(10_000);
});

const pids = (process.env.DISPATCHER_PIDS ?? '').split(',').filter(Boolean).map(Number);
for (const pid of pids) {
  const before = cpuSeconds(pid);
  await pause(20_000);
  report({
    what: 'dispatcher at rest with the parked ones',
    pid,
    cpuShare: round((cpuSeconds(pid) - before) / 20),
    privateMB: round(privateBytes(pid) / 2 ** 20),
  });
}
redis.disconnect();
process.exit(0);
