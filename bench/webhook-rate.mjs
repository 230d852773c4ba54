// Contract 4: deliveries per second to one good receiver, from the first call to the last delivery.
import { call, each, hook, pause, receiver, report, round } from './service.mjs';

const total = Number(process.env.TOTAL ?? 3000);

async function perSecond() {
  let delivered = 0;
  const { url, close } = await receiver(() => delivered++);
  const startedAt = performance.now();
  await each(total, 64, (i) => call('echo', { i }, hook(url)));
  while (delivered < total) await pause(5);
  close();
  return round((total * 1000) / (performance.now() - startedAt));
}

await perSecond();
report({ deliveriesPerSecond: await perSecond(), total });
process.exit(0);
