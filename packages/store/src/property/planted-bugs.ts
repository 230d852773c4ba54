// Bugs planted into the scripts, to prove that the model finds them. A bug replaces a piece of a script.
import { type ScriptName, scriptSource, scriptText } from '../script-files.ts';
import { plantable, type scripts } from './faults.ts';
import type { Behaviour, Step } from './schedule.ts';

export interface PlantedBug {
  readonly name: string;
  readonly piece: string;
  readonly becomes: string;
  /** Steps that trigger the bug. They run before and between the random steps. The checks are the same. */
  readonly bait: readonly Step[];
}

const plan = { items: [1, 2, 1], how: 'return', hurry: false, large: false, head: false } as const;
const quick = { ...plan, items: [] } as const;
const call = (
  kind: 'items' | 'outcome' | 'promised' | 'webhook',
  more: object = {},
  how: { key?: string; absentMs?: number; behaviour?: Behaviour } = {},
): Step => ({ type: 'call', gateway: 0, kind, plan: { ...plan, ...more }, behaviour: {}, ...how });
const fault = (script: (typeof scripts)[number], how: 'lost' | 'resent' | 'repeated' | 'delayed', ms = 15): Step => ({
  type: 'fault',
  script,
  fault: how,
  ms,
});
/** Runs for about 60 ms or more, so gateways report the positions of their readers (attend) during the run. */
const long = Array.from({ length: 60 }, () => 1);
const wait = (ms: number): Step => ({ type: 'wait', ms });
/** Ten runs that stay, on nine slots: one run waits in the queue. */
const busy: Step[] = Array.from({ length: 10 }, () => call('promised', { how: 'stay' }));
const freezeAll: Step[] = [0, 1, 2].map((which) => ({ type: 'freeze', which }));
const thawAll: Step[] = [0, 1, 2].map((which) => ({ type: 'thaw', which }));

export const plantedBugs: readonly PlantedBug[] = [
  {
    name: 'a page has no head',
    piece: "redis.call('HGET', K.run .. id, 'head') or ''",
    becomes: "''",
    bait: [{ type: 'swallow', only: 'all', count: 1 }, call('items', { head: true, items: long }), wait(30)],
  },
  {
    name: 'a run whose head was published goes back to the queue',
    piece: "and redis.call('HEXISTS', K.run .. id, 'head') == 0",
    becomes: '',
    bait: [call('items', { head: true, how: 'crash', items: [] }), wait(20)],
  },
  {
    name: 'append has no fence',
    piece: "if f[1] ~= 'running' or not is_of(f[2], token) then",
    becomes: 'if not f[1] then',
    bait: [
      call('items', { items: [1, 1, 1, 1, 1, 1, 1, 1, 1] }),
      wait(8),
      ...freezeAll,
      wait(700),
      ...thawAll,
      wait(30),
    ],
  },
  {
    name: 'end has no fence',
    piece: 'if run == nil or run.token ~= token then',
    becomes: 'if run == nil then',
    bait: [
      fault('end', 'repeated', 12),
      call('promised', { how: 'crash', items: [] }),
      call('promised', { how: 'crash', items: [] }),
      wait(5),
      fault('end', 'delayed', 40),
      wait(60),
    ],
  },
  {
    name: 'an end overwrites an earlier outcome',
    piece: "elseif ENDED[run.state] then\n    if redis.call('HEXISTS', K.run .. id, 'refused')",
    becomes: "elseif false then\n    if redis.call('HEXISTS', K.run .. id, 'refused')",
    bait: [fault('end', 'repeated', 30), call('items'), wait(60)],
  },
  {
    name: 'a repeated append counts twice',
    piece: 'elseif first == last + 1 then',
    becomes: 'elseif first <= last + 1 then',
    bait: [fault('append', 'lost'), call('items'), wait(20)],
  },
  {
    name: 'end does not count the items',
    piece: 'elseif outcome.least > run.items then',
    becomes: 'elseif false then',
    bait: [fault('append', 'delayed', 40), call('items', { hurry: true, items: [2] }), wait(60)],
  },
  {
    name: 'a repeated take returns no runs',
    piece: "if state == 'running' and is_of(attempt, token) then",
    becomes: 'if false then',
    bait: [wait(20), fault('take', 'lost'), call('promised', quick), wait(10)],
  },
  {
    name: 'a repeated take takes further runs',
    piece: 'if number == last then',
    becomes: 'if false then',
    bait: [wait(20), fault('take', 'lost'), call('promised', quick), wait(10)],
  },
  {
    name: 'a queued run that is cancelled stays in the queue',
    piece: "finish(id, run, failure(run, 'cancelled', 'cancelled', 'The run was cancelled.'), handover_ms)",
    becomes: '',
    bait: [
      ...busy,
      wait(20),
      ...[8, 9].map((run): Step => ({ type: 'cancel', run, gateway: 1 })),
      ...[0, 1, 2, 3, 4, 5, 6, 7].map((run): Step => ({ type: 'cancel', run, gateway: 1 })),
    ],
  },
  {
    name: 'accept ignores an earlier cancel',
    piece: "if tombstones and redis.call('ZSCORE', K.tombstones, id) then",
    becomes: 'if false then',
    bait: [{ type: 'cancel first', gateway: 0 }],
  },
  {
    name: 'a repeated accept queues the run again',
    piece: "if known and redis.call('EXISTS', key) == 1 then return 'accepted' end",
    becomes: '',
    bait: [fault('accept', 'repeated', 40), call('promised', quick), wait(60)],
  },
  {
    name: 'attend does not repeat a lost last message',
    piece: 'answer = {run.state, run.items}',
    becomes: "answer = {'running', 0}",
    bait: [{ type: 'swallow', only: 'ends', count: 2 }, call('items'), wait(40)],
  },
  {
    name: 'expired leases are not reaped',
    piece: 'for _, id in ipairs(overdue(K.leases, now)) do',
    becomes: 'for _, id in ipairs({}) do',
    bait: [
      call('promised', { how: 'stay' }),
      wait(20),
      ...[0, 1, 2].map((which): Step => ({ type: 'kill worker', which })),
    ],
  },
  {
    name: 'the disconnect of the last reader does nothing',
    piece: 'if not run.absent then return end',
    becomes: 'do return end',
    bait: [call('items', { how: 'stay' }), wait(20)],
  },
  {
    name: 'dead gateways count as readers',
    piece: 'for _, gateway in ipairs(overdue(K.gateways, now)) do',
    becomes: 'for _, gateway in ipairs({}) do',
    bait: [call('items', { how: 'stay' }), wait(20), { type: 'kill gateway', which: 0 }],
  },
  {
    name: 'a page begins one item late',
    piece: 'local entries, from, share = {}, cursor + 1,',
    becomes: 'local entries, from, share = {}, cursor + 2,',
    bait: [call('items', { items: [1, 1, 1] }), wait(30)],
  },
  {
    name: 'a requeued run is not in the queue',
    piece: "redis.call('ZADD', K.queue .. queue, now_us, id)",
    becomes: '',
    bait: [call('promised', { how: 'crash', items: [] }), wait(20)],
  },
  {
    name: 'a due webhook is not stored',
    piece: "send_members('ZADD', K.due, due)",
    becomes: 'do end',
    bait: [call('webhook'), wait(30)],
  },
  {
    name: 'the time without a reader never begins',
    piece: "redis.call('ZADD', K.absent, now + run.absent, id)",
    becomes: '',
    bait: [call('items', { how: 'stay' }, { absentMs: 30 }), wait(20)],
  },
  {
    name: 'the window drops items that no reader has taken',
    piece: 'math.max(taken, tonumber(position))',
    becomes: 'last',
    bait: [call('items', { items: long }, { behaviour: { pauseAfter: 1 } }), wait(150)],
  },
  {
    name: 'only a window of a promised stream is kept',
    piece: "if position == '-' then",
    becomes: "if position == '-' then position = '1000000' end if false then",
    bait: [call('promised', { items: [1, 1, 1, 1, 1, 1, 1, 1] }), wait(30)],
  },
  {
    name: 'eviction removes promised runs',
    piece: "local ids = redis.call('ZRANGE', K.kept, seen, seen + 63)",
    becomes: "local ids = redis.call('ZRANGE', P .. 'promises', seen, seen + 63)",
    bait: [call('promised', quick), wait(20), { type: 'evict' }],
  },
  {
    name: 'eviction removes runs with readers',
    piece: "if tonumber(redis.call('ZSCORE', K.reading, id) or 0) < now then forget(id) end",
    becomes: 'forget(id)',
    bait: [6, 9, 12, 15].flatMap((ms) => [
      call('items', { items: [2, 2] }, { behaviour: { pauseAfter: 1 } }),
      wait(ms),
      { type: 'evict' as const },
      wait(4),
      { type: 'evict' as const },
    ]),
  },
  {
    name: 'a run that never started keeps its key',
    piece: "free_claim(id, redis.call('HGET', key, 'claim'))",
    becomes: '',
    bait: [
      ...busy,
      wait(20),
      call('promised', quick, { key: 'k2' }),
      wait(10),
      { type: 'cancel', run: 10, gateway: 1 },
      wait(10),
      call('promised', quick, { key: 'k2' }),
      wait(10),
    ],
  },
  {
    name: 'another request under a key joins its run',
    piece: "return request == more.fingerprint and 'joined ' .. earlier or 'conflict'",
    becomes: "return 'joined ' .. earlier",
    bait: [call('promised', quick, { key: 'k3' }), wait(10), call('promised', quick, { key: 'k3 other' }), wait(10)],
  },
  {
    name: 'every call claims the key again',
    piece: "if redis.call('EXISTS', K.run .. earlier) == 1 then",
    becomes: 'if false then',
    bait: [call('promised', quick, { key: 'k4' }), call('promised', quick, { key: 'k4' }), wait(20)],
  },
  {
    name: 'a dead worker stays in the lists of waiting workers',
    piece: "if app then redis.call('ZREM', K.waiting .. app, worker) end",
    becomes: '',
    bait: [{ type: 'kill worker', which: 0 }, wait(30)],
  },
  {
    name: 'items and reservations exceed the share',
    piece: 'code = check_share(more)',
    becomes: "code = 'ok'",
    bait: [{ type: 'tighten' }, call('promised', { large: true }), wait(150)],
  },
  {
    name: 'an outcome exceeds the share',
    piece: 'local share = check_share(size - run.size - RESERVED)',
    becomes: "local share = 'ok'",
    bait: [{ type: 'tighten' }, call('promised', { ...quick, how: 'raise', large: true }), wait(150)],
  },
  {
    name: 'a run whose outcome is refused does not end',
    piece: "if code ~= 'again' then finish",
    becomes: "if code == 'ended' then finish",
    bait: [{ type: 'tighten' }, call('promised', { ...quick, how: 'raise', large: true }), wait(150)],
  },
  {
    name: 'a reservation counts beside the result',
    piece: "size = size - (redis.call('HGET', key, 'reserved') or 0)",
    becomes: '',
    bait: [call('promised', { ...quick, large: true }), wait(60)],
  },
];

/** Returns the scripts with the bug. @throws Error if a script contains the bug's piece twice, or no script contains it */
export function plant({ name, piece, becomes }: PlantedBug): Map<ScriptName, string> {
  const planted = new Map<ScriptName, string>();
  for (const script of plantable) {
    const parts = scriptSource(script).split(piece);
    if (parts.length === 1) continue;
    if (parts.length > 2) throw new Error(`the piece of '${name}' is in ${script} more than once`);
    planted.set(script, scriptText(parts.join(becomes)));
  }
  if (planted.size === 0) throw new Error(`the piece of '${name}' is in no script`);
  return planted;
}
