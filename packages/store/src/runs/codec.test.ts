// The packed fields of a record: the scripts write what this codec reads, and the scripts read what this codec writes.

import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { SteppedStore, steppedStores } from '../lua-tests/stepped-store.ts';
import { scriptText, withParts } from '../script-files.ts';
import { type CallTerms, isHeld, packTerms, readAttempt, readCall } from './codec.ts';

let store: SteppedStore;
steppedStores((fresh) => {
  store = fresh;
});

/** Runs Lua with definitions of parts/run.lua. Returns its texts. */
async function lua(names: string, code: string, ...args: string[]): Promise<(string | null)[]> {
  const part = (name: string): string => readFileSync(new URL(`../parts/${name}.lua`, import.meta.url), 'utf8');
  const script = scriptText(withParts(`#!lua\n--@include run: ${names}\n${code}`, part));
  // The arguments come as Redis' own, without MessagePack.
  const plain = script.replace(/^local P, ARGV, reply = .*$/m, 'local P = KEYS[1]');
  return (await store.client.eval(plain, 1, store.prefix, ...args)) as (string | null)[];
}

const base: CallTerms = { keepMs: 60_000, promised: false, paced: false };
test.each<[string, CallTerms]>([
  ['a plain call', base],
  ['a promised call', { ...base, promised: true }],
  ['a paced call that its last disconnect cancels', { ...base, paced: true, absentMs: 0 }],
  ['a call with a timer, a webhook and a key', { ...base, absentMs: 5_000, webhook: {}, idempotency: {} }],
])('lua reads the terms of %s as they were written', async (_, terms) => {
  const read = await lua(
    'pack_call, read_call, timer_of',
    `local terms = ARGV[1]
local call = read_call(pack_call('app', 'fn', '17', terms))
local function text(value) return tostring(value) end
return {call.app, text(call.keep), text(call.absent), text(call.promised), text(call.paced), text(call.hook), text(call.claim), text(timer_of(terms))}`,
    packTerms(terms),
  );
  const { keepMs, absentMs, promised, paced, webhook, idempotency } = terms;
  expect(read).toEqual(
    ['app', keepMs, absentMs ?? 'nil', promised, paced, !!webhook, !!idempotency, absentMs ? absentMs : 'nil'].map(
      String,
    ),
  );
});

test('TypeScript reads a call, with and without a traceparent, as lua packed it', async () => {
  const terms = packTerms({ ...base, promised: true, absentMs: 7 });
  const [call = ''] = await lua('pack_call', "return {pack_call('app', 'fn', '1234', ARGV[1])}", terms);
  const facts = {
    app: 'app',
    fn: 'fn',
    acceptedAt: 1234,
    promised: true,
    paced: false,
    preformatted: true,
    isRequest: false,
  };
  expect(readCall(call ?? '')).toEqual(facts);
  const wrapped = packTerms({ ...base, preformatted: false });
  const [asData = ''] = await lua('pack_call', "return {pack_call('app', 'fn', '1234', ARGV[1])}", wrapped);
  expect(readCall(asData ?? '').preformatted).toBe(false);
  const trace = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  expect(readCall(`${call} ${trace}`)).toEqual({ ...facts, traceparent: trace });
  const code = 'return {traceparent_of(ARGV[1]), (target_of(ARGV[1])), tostring(retention_of(ARGV[1]))}';
  expect(await lua('traceparent_of, target_of, retention_of', code, `${call} ${trace}`)).toEqual([
    trace,
    'app',
    '60000',
  ]);
});

test('TypeScript reads an attempt, running and after a requeue, as lua packed it', async () => {
  const code = "return {pack_attempt('1', 'w:7', '1234'), pack_attempt('2', 'w:7', '-')}";
  const [running, requeued] = await lua('pack_attempt', code);
  expect(readAttempt(running ?? '')).toEqual({ number: 1, startedAt: 1234 });
  expect(readAttempt(requeued ?? '')).toEqual({ number: 2 });
  expect(readAttempt(undefined)).toEqual({ number: 0 });
});

test('both sides agree whether an attempt holds its delivery', async () => {
  const now = store.now();
  const lease = 20_000;
  for (const [upto, held] of [
    [now + lease, true],
    [now - 1_000, false],
    // The clock has stepped back since.
    [now + 3 * lease, false],
  ] as const) {
    const code =
      'local hold = pack_hold(ARGV[1], ARGV[2], ARGV[3])\nlocal token, held = read_hold(hold)\nreturn {hold, token, tostring(held)}';
    const [hold, token, ofLua] = await lua('pack_hold, read_hold', code, 't1', String(upto), String(lease));
    expect([token, ofLua, isHeld(hold ?? undefined, now)]).toEqual(['t1', String(held), held]);
  }
});
