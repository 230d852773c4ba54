// Contract 5: takes and wakes of an intake, with a scripted store.
import type { TakenRun, TakeRequest } from '@inference-proxy/store';
import { expect, test } from '@jest/globals';
import { RunIntake } from './run-intake.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Queues by app, and free slots that taken runs occupy. */
function intakeOn(slots: Record<string, number>, queued: Record<string, number>) {
  const takes: (readonly TakeRequest[])[] = [];
  const started: string[] = [];
  const state = { atMost: 100, before: async (): Promise<void> => undefined };
  const intake = new RunIntake(
    'demo',
    {
      take: async (_project, wants) => {
        takes.push(wants);
        await state.before();
        const runs: TakenRun[] = [];
        let more = false;
        for (const { app, slots: asked } of wants)
          for (let at = 0; at < asked && (queued[app] ?? 0) > 0; at++) {
            if (runs.length === state.atMost) {
              more = true;
              break;
            }
            queued[app] = (queued[app] ?? 0) - 1;
            runs.push({
              project: 'demo',
              app,
              queue: app,
              runId: `${app}${started.length + runs.length}`,
              fn: 'run',
              token: 't',
              attempt: 1,
              paced: false,
              promised: false,
              params: Buffer.from('{}'),
            });
          }
        return { runs, more };
      },
    },
    () => Object.entries(slots).map(([app, free]) => ({ app, slots: free })),
    (run) => {
      started.push(run.app);
      slots[run.app] = (slots[run.app] ?? 0) - 1;
    },
  );
  return { intake, takes, started, state, slots, queued };
}

test('a take asks for the free slots of every app, and the taken runs start', async () => {
  const { intake, takes, started } = intakeOn({ chat: 2, draw: 1, full: 0 }, { chat: 1, draw: 5 });
  intake.wake(undefined);
  await turn();
  expect(takes[0]).toEqual([
    { app: 'chat', slots: 2 },
    { app: 'draw', slots: 1 },
  ]);
  expect(started).toEqual(['chat', 'draw']);
});

test('an app whose queue was empty is in no take until the store wakes it', async () => {
  const { intake, takes, queued, started } = intakeOn({ chat: 2 }, { chat: 0 });
  intake.look();
  await turn();
  intake.look();
  await turn();
  expect(takes).toHaveLength(1);
  queued.chat = 1;
  intake.wake('chat');
  await turn();
  expect(started).toEqual(['chat']);
});

test('an app whose slots were all filled is in the next take when a slot becomes free', async () => {
  const { intake, takes, slots, started } = intakeOn({ chat: 1 }, { chat: 2 });
  intake.look();
  await turn();
  expect(takes).toHaveLength(1);
  slots.chat = 1;
  intake.look();
  await turn();
  expect(started).toEqual(['chat', 'chat']);
});

test('takes follow each other at once while the store reports more runs', async () => {
  const { intake, state, started } = intakeOn({ chat: 5 }, { chat: 5 });
  state.atMost = 2;
  intake.look();
  await turn();
  expect(started).toHaveLength(5);
});

test('a wake during a take is not lost, and only one take is open at a time', async () => {
  const { intake, takes, queued, state, started } = intakeOn({ chat: 1 }, { chat: 0 });
  let answer = (): void => undefined;
  state.before = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  intake.look();
  await turn();
  intake.wake('chat');
  intake.wake('chat');
  expect(takes).toHaveLength(1);
  answer();
  await turn();
  queued.chat = 1;
  answer();
  await turn();
  expect(started).toEqual(['chat']);
});

test('a wake without a free slot is passed to the next worker, and the app is in the next take with a free slot', async () => {
  const { intake, takes, slots, queued, started } = intakeOn({ chat: 1 }, { chat: 0 });
  intake.look();
  await turn();
  slots.chat = 0;
  queued.chat = 1;
  intake.wake('chat');
  await turn();
  expect(started).toEqual([]);
  expect(takes.slice(1)).toEqual([[{ app: 'chat', slots: 0 }]]);
  slots.chat = 1;
  intake.look();
  await turn();
  expect(started).toEqual(['chat']);
});

test('stopping waits for the open take and starts its runs', async () => {
  const { intake, takes, state, started, queued } = intakeOn({ chat: 1 }, { chat: 1 });
  let answer = (): void => undefined;
  state.before = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  intake.look();
  await turn();
  const stopped = intake.stop();
  state.before = async () => undefined;
  answer();
  await stopped;
  expect(started).toEqual(['chat']);
  const before = takes.length;
  queued.chat = 1;
  intake.wake('chat');
  await turn();
  expect(takes).toHaveLength(before);
});

test('a stopped intake leaves the waiting sets', async () => {
  const { intake, takes } = intakeOn({ chat: 2 }, { chat: 0 });
  intake.look();
  await turn();
  await intake.stop();
  expect(takes.at(-1)).toEqual([{ app: 'chat', slots: 0 }]);
});

test('the queue of an old version is asked again, and reported when it is empty', async () => {
  const emptied: string[] = [];
  const takes: (readonly TakeRequest[])[] = [];
  let served = [{ app: 'chat', queue: 'chat@a', slots: 2, emptied: () => leave() }];
  const intake = new RunIntake(
    'demo',
    {
      take: async (_project, wants) => {
        takes.push(wants.map(({ app, slots, queue }) => ({ app, slots, ...(queue && { queue }) })));
        return { runs: [], more: false };
      },
    },
    () => served,
    () => undefined,
  );
  const leave = (): void => {
    emptied.push('a');
    served = [];
    intake.follow();
  };
  intake.look();
  await turn();
  await turn();
  expect(emptied).toEqual(['a']);
  // A take without slots leaves the waiting set of a queue that this worker no longer serves.
  expect(takes).toEqual([[{ app: 'chat', queue: 'chat@a', slots: 2 }], [{ app: 'chat@a', slots: 0 }]]);
});
