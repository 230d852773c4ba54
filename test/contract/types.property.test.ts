// Contract 1, "Parameters and types", by property: the schema and the process agree, over random annotations and values. If the gateway
// accepts a value, the process converts the value. If the process refuses a value, the answer is 422.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { pydanticEnvironments } from '../stack/pydantic.ts';
import { joinSharedStack, type SharedStack } from '../stack/shared-stack.ts';

const SEED = Number(process.env.TYPES_SEED ?? 15);
const FUNCTIONS = 30;
const VALUES = 15;

/** An annotation, and values that mostly fit. */
interface Typed {
  readonly annotation: string;
  readonly values: fc.Arbitrary<unknown>;
  /** Whether the values of a set may have this type. */
  readonly hashable: boolean;
}

const CLASSES = `
import enum
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple, Optional, TypedDict, Union
from uuid import UUID

class Color(enum.Enum):
    RED = "red"
    TWO = 2

@dataclass
class Node:
    name: str
    next: Optional["Node"] = None

@dataclass
class Pair:
    color: Color
    when: Optional[datetime] = None

class Point(NamedTuple):
    x: int
    y: float

class Options(TypedDict, total=False):
    limit: int
    until: date

def positive(x: "Positive"):
    return repr(x)

@dataclass
class Positive:
    number: int

    def __post_init__(self):
        if self.number <= 0:
            raise ValueError("not positive")
`;
const MODELS = `
from pydantic import BaseModel

class Item(BaseModel):
    name: str
    price: Decimal = Decimal(1)
    parts: list[Color] = []
    sent: Optional[timedelta] = None
`;

const two = (n: number): string => String(n).padStart(2, '0');
const dates = fc
  .tuple(fc.integer({ min: 1, max: 9999 }), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 31 }))
  .map(([year, month, day]) => `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`);
const times = fc
  .tuple(
    fc.integer({ min: 0, max: 24 }),
    fc.integer({ min: 0, max: 60 }),
    fc.constantFrom('', ':00', ':59', ':07.5', ':07.123456789', ':60'),
    fc.constantFrom('', 'Z', '+00:00', '-23:59', '+05:30', '+24:00', 'z'),
  )
  .map(([hour, minute, second, zone]) => `${two(hour)}:${two(minute)}${second}${zone}`);
const dateTimes = fc
  .tuple(dates, fc.constantFrom('T', ' ', 't'), times)
  .map(([date, between, time]) => date + between + time);
const durations = fc.oneof(
  fc.double({ min: -86_399_999_913_600, max: 86_399_999_913_600, noNaN: true }),
  fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.nat(99_999_999),
      fc.constantFrom('', 'T1H', 'T999999H999999M', 'T9999999M', 'T0.000001S', 'T'),
    )
    .map(([sign, days, rest]) => `${sign}P${days}D${rest}`),
);
const numbers = fc.double({ noNaN: true, noDefaultInfinity: true });

const leaf = (annotation: string, values: fc.Arbitrary<unknown>, hashable = true): Typed => ({
  annotation,
  values,
  hashable,
});
const color = fc.constantFrom('red', 2, 'blue');
const node: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  node: fc.record({ name: fc.string(), next: fc.option(tie('node'), { maxDepth: 3 }) }, { requiredKeys: ['name'] }),
})).node;

const leaves: Typed[] = [
  leaf('str', fc.string()),
  leaf('int', fc.integer()),
  leaf('float', numbers),
  leaf('bool', fc.boolean()),
  leaf('None', fc.constant(null)),
  leaf('date', dates),
  leaf('time', times),
  leaf('datetime', dateTimes),
  leaf('timedelta', durations),
  leaf('UUID', fc.uuid()),
  leaf('Decimal', fc.oneof(numbers, fc.constantFrom('1.10', '-.5', '1e5', 'NaN', ''))),
  leaf('bytes', fc.string()),
  leaf('Color', color),
  leaf('Literal["a", 1, None]', fc.constantFrom('a', 1, null, true)),
  leaf('Node', node, false),
  leaf('Pair', fc.record({ color, when: fc.option(dateTimes) }, { requiredKeys: ['color'] }), false),
  leaf('Point', fc.tuple(fc.integer(), numbers)),
  leaf('Options', fc.record({ limit: fc.integer(), until: dates }, { requiredKeys: [] }), false),
];
const ITEM = leaf(
  'Item',
  fc.record({ name: fc.string(), price: numbers, parts: fc.array(color), sent: durations }, { requiredKeys: ['name'] }),
  false,
);

/** Annotations of the given leaves, and of containers around them. */
function annotations(from: readonly Typed[]): fc.Arbitrary<Typed> {
  const plain = fc.constantFrom(...from);
  const { typed } = fc.letrec<{ typed: Typed }>((tie) => ({
    typed: fc.oneof(
      { maxDepth: 2 },
      plain,
      tie('typed').map((one) => leaf(`list[${one.annotation}]`, fc.array(one.values), false)),
      tie('typed').map((one) => leaf(`dict[str, ${one.annotation}]`, fc.dictionary(fc.string(), one.values), false)),
      tie('typed').map((one) => leaf(`Optional[${one.annotation}]`, fc.option(one.values), one.hashable)),
      plain
        .filter(({ hashable }) => hashable)
        .map((one) => leaf(`frozenset[${one.annotation}]`, fc.array(one.values), false)),
      fc
        .tuple(tie('typed'), tie('typed'))
        .map(([a, b]) => leaf(`tuple[${a.annotation}, ${b.annotation}]`, fc.tuple(a.values, b.values), false)),
      fc
        .tuple(tie('typed'), plain)
        .map(([a, b]) => leaf(`Union[${a.annotation}, ${b.annotation}]`, fc.oneof(a.values, b.values), false)),
    ),
  }));
  return typed;
}

const environments = await pydanticEnvironments();
const sampled = environments.map(({ venv }) =>
  fc.sample(annotations(venv === undefined ? leaves : [...leaves, ITEM, ITEM, ITEM]), {
    numRuns: FUNCTIONS,
    seed: SEED,
  }),
);

let stack: SharedStack;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'typed-'));
  const apps = environments.flatMap((environment, index) =>
    environment.missing === undefined ? [{ ...environment, index }] : [],
  );
  for (const { name, venv, index, prelude } of apps) {
    const functions = (sampled[index] ?? []).map(
      ({ annotation }, number) => `def f${number}(x: ${annotation}):\n    return repr(x)\n`,
    );
    await mkdir(join(folder, name));
    const classes = venv === undefined ? CLASSES : CLASSES + MODELS;
    await writeFile(join(folder, name, 'main.py'), [prelude, classes, ...functions].join('\n'));
    if (venv !== undefined) await writeFile(join(folder, name, 'app.toml'), `[runtime.python]\nvenv = "${venv}"\n`);
  }
  stack = await joinSharedStack(
    'types-property',
    apps.map(({ name }) => join(folder, name)),
  );
});
afterAll(async () => {
  await stack?.leave();
  await rm(folder, { recursive: true, force: true });
});

describe.each(environments.map((environment, index) => ({ ...environment, index })))('$name', (environment) => {
  const { name, missing, index } = environment;
  const testIf = missing === undefined ? test : test.skip;
  const functions = (sampled[index] ?? []).map(({ annotation, values }, number) => ({ annotation, values, number }));

  testIf.each(functions)('f$number: $annotation', async ({ values, number }) => {
    const sent = fc.oneof({ weight: 4, arbitrary: values }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) });
    await fc.assert(
      fc.asyncProperty(sent, async (x) => {
        const answer = await stack.caller.call(`${name}/f${number}`, JSON.stringify({ x }));
        const seen = { x, status: answer.status, text: answer.text };
        if (answer.status === 200) return;
        // The gateway has refused the value: there is no run.
        expect({ ...seen, status: 422 }).toEqual(seen);
        expect({ ...seen, hasRun: answer.text.includes('"run_id"') }).toEqual({ ...seen, hasRun: false });
      }),
      { numRuns: VALUES, seed: SEED },
    );
  });

  testIf('a value that only the process can refuse returns 422, and its run has failed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: -5, max: 5 }), async (value) => {
        const answer = await stack.caller.call(`${name}/positive`, { x: { number: value } });
        expect({ value, status: answer.status }).toEqual({ value, status: value > 0 ? 200 : 422 });
        if (value > 0) return;
        const { run_id: runId, error } = JSON.parse(answer.text) as {
          run_id: string;
          error: { code: string; details: unknown };
        };
        expect(error).toMatchObject({ code: 'invalid_input', details: [{ type: 'value_error' }] });
        expect(await stack.caller.lookUp(runId)).toMatchObject({ status: 'failed', error: { code: 'invalid_input' } });
      }),
      { numRuns: VALUES, seed: SEED },
    );
  });
});
