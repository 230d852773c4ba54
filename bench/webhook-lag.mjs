// Contract 4: ms from a run's end to its first attempt at the receiver, at 50 calls a second.
import { call, hook, paced, pause, percentiles, receiver, report } from './service.mjs';

const perSecond = Number(process.env.PER_SECOND ?? 50);
const seconds = Number(process.env.SECONDS ?? 20);
const lags = [];
const { url, close } = await receiver(({ timestamp }, at) => lags.push(at - Date.parse(timestamp)));
const total = perSecond * (seconds + 5);
await paced(total, perSecond, (i) => call('echo', { i }, hook(url)));
while (lags.length < total) await pause(20);
report({ lagMs: percentiles(lags.slice(perSecond * 5)), perSecond });
close();
process.exit(0);
