// What must hold of every history, whatever went wrong meanwhile: one outcome a run, every item once and in order, every due webhook.
import type { Delivered, History, Seen, Told } from './history.ts';

/** How many items each stream has. */
export const ITEMS = 8;

/** What a call may fail with while something is wrong: each names the trouble, and none takes a half answer for a whole one. */
const EXCUSED = new Set([
  'broken',
  'unavailable',
  'worker_lost',
  'replica_crashed',
  // What a SIGKILL from outside looks like.
  'out_of_memory',
  'overloaded',
  'cancelled',
  'items_gone',
]);

/** Everything that is wrong with a history, in words; nothing where all is right. */
export function faultsOf(history: History): string[] {
  return [
    ...history.seen.flatMap((seen) => [...answerFaults(seen, history), ...itemFaults(seen)]),
    ...outcomeFaults(history.told),
    ...keyFaults(history),
    ...deliveryFaults(history),
    ...history.left.map((left) => `left in the store: ${left}`),
  ];
}

const about = ({ kind, tag, runId }: Seen): string => `${kind} ${tag}${runId === undefined ? '' : ` (${runId})`}`;

function answerFaults(seen: Seen, { troubles }: History): string[] {
  if (seen.is === 'ok') return [];
  if (!EXCUSED.has(seen.is)) return [`${about(seen)} was answered by ${seen.is}`];
  const excused = troubles.some(({ from, to }) => seen.endedAt >= from && seen.beganAt <= to);
  return excused ? [] : [`${about(seen)} failed with ${seen.is} when nothing was wrong`];
}

function itemFaults(seen: Seen): string[] {
  if (seen.items === undefined) return [];
  const wrong = seen.items.findIndex((item, at) => item !== at + 1);
  if (wrong !== -1) return [`${about(seen)} read ${seen.items.join(' ')}`];
  if (seen.is === 'ok' && seen.items.length !== ITEMS) return [`${about(seen)} is complete with ${seen.items.length}`];
  return [];
}

function outcomeFaults(told: History['told']): string[] {
  return told.flatMap((each) => {
    const [first] = each;
    if (first === undefined) return [];
    if (first.status === 'queued' || first.status === 'running') return [`${first.runId} never ended`];
    const differs = each.some((other) => !sameRun(first, other));
    return differs ? [`${first.runId} is told differently: ${JSON.stringify(each)}`] : [];
  });
}

const sameRun = (a: Told, b: Told): boolean => JSON.stringify(a) === JSON.stringify(b);

/** One key, one run: whoever asks under it is answered by that run, and what succeeded was entered once. */
function keyFaults({ seen, entered }: History): string[] {
  return seen.flatMap((one) => {
    const ids = new Set(one.answeredBy ?? []);
    const times = entered.get(one.tag) ?? 0;
    return [
      ...(ids.size > 1 ? [`${about(one)} was answered by ${[...ids].join(' and ')}`] : []),
      ...(one.kind === 'retried' && one.is === 'ok' && times !== 1 ? [`${about(one)} was entered ${times} times`] : []),
    ];
  });
}

function deliveryFaults({ seen, delivered, told }: History): string[] {
  const byRun = Map.groupBy(delivered, ({ runId }) => runId);
  const states = new Map(told.flatMap(([run]) => (run ? [[run.runId, run.status] as const] : [])));
  const promised = seen.filter(({ kind, is, runId }) => kind === 'promised' && is === 'ok' && runId !== undefined);
  return [
    ...delivered.filter(({ verified }) => !verified).map(({ runId }) => `${runId} came with a wrong signature`),
    ...promised.flatMap((one) => runDeliveryFaults(one, byRun.get(String(one.runId)) ?? [], states)),
  ];
}

function runDeliveryFaults(one: Seen, deliveries: readonly Delivered[], states: ReadonlyMap<string, string>): string[] {
  const [first] = deliveries;
  if (first === undefined) return [`${about(one)} was never delivered`];
  const status = (JSON.parse(first.body) as { status?: string }).status;
  return [
    ...(deliveries.some(({ body }) => body !== first.body) ? [`${about(one)} was delivered with two bodies`] : []),
    ...(deliveries.some(({ webhookId }) => webhookId !== first.webhookId) ? [`${about(one)} has two webhook ids`] : []),
    ...(status !== states.get(String(one.runId)) ? [`${about(one)} was delivered as ${status}`] : []),
  ];
}
