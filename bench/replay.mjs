// Contract 5: ms to the first item of a replay, and items per second of a replay of an ended run.
import { ended, open, percentiles, report, round } from './service.mjs';

const items = 100_000;
const runId = await ended('items', { n: items, size: 64 });

/** Reads the replay of all items after `after`. @returns ms to the first item, ms to the last item, number of items */
async function replay(after) {
  const startedAt = performance.now();
  const answer = await open(`/runs/${runId}/stream?after=${after}`, { own: true });
  let firstMs;
  let count = 0;
  let rest = '';
  for await (const chunk of answer.setEncoding('latin1')) {
    firstMs ??= performance.now() - startedAt;
    const parts = (rest + chunk).split('\n\n');
    rest = parts.pop();
    count += parts.length;
  }
  return { firstMs, ms: performance.now() - startedAt, count };
}

const rates = [];
for (let i = 0; i < 7; i++) {
  const { count, ms } = await replay(0);
  if (count !== items) throw new Error(`${count} items of ${items} came`);
  if (i >= 2) rates.push(count / (ms / 1000));
}
const firsts = [];
for (let i = 0; i < 220; i++) {
  const { firstMs, count } = await replay(items - 10);
  if (count !== 10) throw new Error(`${count} items of 10 came`);
  if (i >= 20) firsts.push(firstMs);
}
report({ replay: 'items/s', ...percentiles(rates) });
report({ replay: 'ms from a resume request to its first item', ...percentiles(firsts), of: round(items) });
