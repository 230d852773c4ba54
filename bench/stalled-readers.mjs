// Contract 3: the gateway's memory for a reader that has stopped reading. GATEWAY_PID is the pid of the gateway.
import { ended, open, pause, privateBytes, report, round } from './service.mjs';

const pid = Number(process.env.GATEWAY_PID);
const readers = Number(process.env.READERS ?? 500);
const gzip = process.argv.includes('--gzip') ? { 'accept-encoding': 'gzip' } : {};
const runId = await ended('items', { n: 50_000, size: 256 });

async function stall() {
  const answer = await open(`/runs/${runId}/stream`, { own: true, more: gzip });
  answer.pause();
  return answer;
}

const opened = [];
// The first readers allocate the memory that all readers share.
for (let i = 0; i < 50; i++) opened.push(await stall());
await pause(3000);
const before = privateBytes(pid);
for (let i = 0; i < readers; i++) opened.push(await stall());
await pause(5000);
const after = privateBytes(pid);
report({ stalledReaders: readers, kBEach: round((after - before) / readers / 1024), gzip: 'accept-encoding' in gzip });

const [one] = opened;
let bytes = 0;
for await (const chunk of one) bytes += chunk.length;
report({ drained: 'one reader', bytes });
process.exit(0);
