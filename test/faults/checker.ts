// The rules for every history, whatever failed: one outcome for each run, every item once and in order, every due webhook.
import { type Delivered, type History, mayBeForgotten, overlaps, type ReportedRun, type Seen } from './history.ts';

/** The number of items in each stream. */
export const ITEMS = 8;

/** A violation of a rule. */
export interface Wrong {
  /** `lost`: accepted and never ended, seen or delivered; `doubled`: more than once; `wrong`: any other violation of the contract. */
  readonly is: 'lost' | 'doubled' | 'wrong';
  readonly text: string;
  /** The time of the call. */
  readonly seen?: Seen;
}

/** Codes that a call may fail with during an episode. Each code names the trouble. No code passes half an answer as a whole one. */
const EXCUSED = new Set([
  'broken',
  'unavailable',
  'worker_lost',
  'replica_crashed',
  // A SIGKILL from outside looks like this.
  'out_of_memory',
  'overloaded',
  'cancelled',
  'items_gone',
]);

/** Returns every violation in a history; empty if the history is correct. */
export function faultsOf(history: History): Wrong[] {
  const byRun = new Map(
    history.seen.flatMap((seen) => (seen.runId === undefined ? [] : [[seen.runId, seen] as const])),
  );
  return [
    ...history.seen.flatMap((seen) => [...answerFaults(seen, history), ...itemFaults(seen)]),
    ...history.reported.flatMap((reported) => outcomeFaults(reported, byRun.get(reported[0]?.runId ?? ''), history)),
    ...keyFaults(history),
    ...deliveryFaults(history),
    ...history.left.map((left): Wrong => ({ is: 'wrong', text: `left: ${left}` })),
  ];
}

const about = ({ kind, tag, runId }: Seen): string => `${kind} ${tag}${runId === undefined ? '' : ` (${runId})`}`;

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

function answerFaults(seen: Seen, history: History): Wrong[] {
  if (seen.is === 'ok') return [];
  // `internal`: the store lost items that only the store had, and a stream must have no holes.
  const forgotten = ['not_found', 'internal'].includes(seen.is) && mayBeForgotten(seen, history.troubles);
  if (!EXCUSED.has(seen.is) && !forgotten) {
    return [{ is: 'wrong', text: `${about(seen)} was answered by ${seen.is}`, seen }];
  }
  if (history.troubles.some((trouble) => overlaps(seen, trouble))) return [];
  const said = seen.said === undefined ? seen.is : `${seen.is} (${seen.said})`;
  const last = Math.max(...history.troubles.map(({ to }) => to).filter((to) => to < seen.beganAt));
  const when = `${seconds(seen.beganAt - last)} after the last trouble, within ${seconds(seen.endedAt - seen.beganAt)}`;
  return [{ is: 'wrong', text: `${about(seen)} failed with ${said} when nothing was wrong, ${when}`, seen }];
}

function itemFaults(seen: Seen): Wrong[] {
  const { items, executions = [] } = seen;
  if (items === undefined) return [];
  if (executions.length > 1) return [doubled(seen, `read items of ${executions.length} executions`)];
  const wrong = items.findIndex((item, at) => item !== at + 1);
  if (wrong !== -1) {
    const doubled = items.indexOf(items[wrong] as number) < wrong;
    return [{ is: doubled ? 'doubled' : 'lost', text: `${about(seen)} read ${items.join(' ')}`, seen }];
  }
  if (seen.is !== 'ok' || items.length === ITEMS) return [];
  return [{ is: 'lost', text: `${about(seen)} is complete with ${items.length}`, seen }];
}

function outcomeFaults(each: readonly ReportedRun[], seen: Seen | undefined, history: History): Wrong[] {
  const [first] = each;
  if (first === undefined) return [];
  const of = seen && { seen };
  if (first.status === 'unknown' && !mayBeForgotten(seen, history.troubles)) {
    return [{ is: 'lost', text: `${first.runId} is unknown`, ...of }];
  }
  if (first.status === 'queued' || first.status === 'running') {
    return [{ is: 'lost', text: `${first.runId} never ended`, ...of }];
  }
  const differs = each.some((other) => JSON.stringify(first) !== JSON.stringify(other));
  return differs
    ? [{ is: 'wrong', text: `${first.runId} is reported differently: ${JSON.stringify(each)}`, ...of }]
    : [];
}

/** One key belongs to one run: every request with the key gets that run's answer, and a successful function was entered once. */
function keyFaults(history: History): Wrong[] {
  return history.seen.flatMap((seen): Wrong[] => {
    if (mayBeForgotten(seen, history.troubles)) return [];
    const ids = new Set(seen.answeredBy ?? []);
    const times = history.entered.get(seen.tag) ?? 0;
    const once = seen.kind !== 'retried' || seen.is !== 'ok' || times === 1;
    return [
      ...(ids.size > 1 ? [doubled(seen, `was answered by ${[...ids].join(' and ')}`)] : []),
      ...(once ? [] : [doubled(seen, `was entered ${times} times`)]),
    ];
  });
}

const doubled = (seen: Seen, text: string): Wrong => ({ is: 'doubled', text: `${about(seen)} ${text}`, seen });

function deliveryFaults(history: History): Wrong[] {
  const { seen, delivered, reported } = history;
  const byRun = Map.groupBy(delivered, ({ runId }) => runId);
  const states = new Map(reported.flatMap(([run]) => (run ? [[run.runId, run.status] as const] : [])));
  const promised = seen.filter(({ kind, is, runId }) => kind === 'promised' && is === 'ok' && runId !== undefined);
  return [
    ...delivered
      .filter(({ verified }) => !verified)
      .map(({ runId }): Wrong => ({ is: 'wrong', text: `${runId} came with a wrong signature` })),
    ...promised
      .filter((one) => !mayBeForgotten(one, history.troubles))
      .flatMap((one) => runDeliveryFaults(one, byRun.get(String(one.runId)) ?? [], states)),
  ];
}

function runDeliveryFaults(one: Seen, deliveries: readonly Delivered[], states: ReadonlyMap<string, string>): Wrong[] {
  const [first] = deliveries;
  if (first === undefined) return [{ is: 'lost', text: `${about(one)} was never delivered`, seen: one }];
  const status = (JSON.parse(first.body) as { status?: string }).status;
  const wrong = (text: string): Wrong => ({ is: 'wrong', text: `${about(one)} ${text}`, seen: one });
  return [
    ...(deliveries.some(({ body }) => body !== first.body) ? [doubled(one, 'was delivered with two bodies')] : []),
    ...(deliveries.some(({ webhookId }) => webhookId !== first.webhookId) ? [doubled(one, 'has two webhook ids')] : []),
    ...(status !== states.get(String(one.runId)) ? [wrong(`was delivered as ${status}`)] : []),
  ];
}
