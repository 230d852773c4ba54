// Contract 7: changes of an app's folder while a whole worker serves it.
import { rm, writeFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Journey, read, until } from '../testing/journey.ts';
import { changing } from '../testing/journey-apps.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await Journey.open();
});
afterEach(() => journey.closeReaders());
afterAll(() => journey.close());

test('an app that cannot be imported is announced as broken with the reason, and an edit repairs it', async () => {
  expect((await journey.app('broken', 'broken')).error).toMatchObject({
    code: 'app_failed_to_start',
    message: expect.stringContaining('nothing_of_that_name'),
  });
  await journey.write('broken', 'main.py', 'def answer(): return 42\n');
  expect((await journey.app('broken', 'ready')).functions.map(({ name }) => name)).toEqual(['answer']);
  expect((await journey.run('broken', 'answer', {})).outcome?.result?.toString()).toBe('42');
});

test('changed code is loaded, and a run of the old code ends with the old code', async () => {
  const old = await journey.app('changing', 'ready');
  const { reader } = await journey.call('changing', 'versions', { path: journey.path('changed') });
  const before = await read(reader, () => false);
  await journey.write('changing', 'main.py', changing(2));
  await until(async () => ((await journey.app('changing', 'ready')).version === old.version ? undefined : true));
  expect((await journey.run('changing', 'version', {})).outcome?.result?.toString()).toBe('2');
  await writeFile(journey.path('changed'), '');
  expect([...before.items, ...(await read(reader)).items]).toEqual(['1', '1']);
});

test('a new app is served, and an app is withdrawn when its folder is removed', async () => {
  await journey.write('young', 'main.py', 'def answer(): return "new"\n');
  await journey.app('young', 'ready');
  expect((await journey.run('young', 'answer', {})).outcome?.result?.toString()).toBe('"new"');
  await rm(journey.path('apps/demo/young'), { recursive: true });
  await until(async () => ((await journey.gateway.registry.apps('demo')).has('young') ? undefined : true));
});

const paged = (size: number): string => `
import os, time
def pages(path):
    yield "x" * ${size}
    while not os.path.exists(path): time.sleep(0.01)
    yield "y" * ${size}
`;

test('the folder is removed during a run: the generator yields its items to its end', async () => {
  await journey.write('removed', 'main.py', paged(10));
  await journey.app('removed', 'ready');
  const { reader } = await journey.call('removed', 'pages', { path: journey.path('removed-go') }, { paced: false });
  const remove = async () => {
    await rm(journey.path('apps/demo/removed'), { recursive: true });
    await until(async () => ((await journey.gateway.registry.apps('demo')).has('removed') ? undefined : true));
    await writeFile(journey.path('removed-go'), '');
  };
  const whole = read(reader, (item) => (item.startsWith('x') ? remove() : true));
  expect(await whole).toMatchObject({ items: ['x'.repeat(10), 'y'.repeat(10)], outcome: { state: 'succeeded' } });
});

test('a run of the old code keeps the output limit of the old manifest', async () => {
  await journey.write('shrunk', 'main.py', paged(600));
  const old = await journey.app('shrunk', 'ready');
  const { reader } = await journey.call('shrunk', 'pages', { path: journey.path('shrunk-go') }, { paced: false });
  const shrink = async () => {
    await journey.write('shrunk', 'app.toml', '[scaling]\nmax_output_bytes = 1000\n');
    await until(async () => ((await journey.app('shrunk', 'ready')).version === old.version ? undefined : true));
    await writeFile(journey.path('shrunk-go'), '');
  };
  const whole = read(reader, (item) => (item.startsWith('x') ? shrink() : true));
  expect(await whole).toMatchObject({ outcome: { state: 'succeeded', items: 2 } });
  const next = await journey.call('shrunk', 'pages', { path: journey.path('shrunk-go') }, { paced: false });
  expect((await read(next.reader)).outcome).toMatchObject({ error: { code: 'output_too_large' } });
});

test('a run of the old code is retried after a crash if the old manifest has retry_on_crash', async () => {
  const code =
    'import os, time\ndef once(begun, go):\n  if os.path.exists(go): return "second"\n  open(begun, "w").write("1")\n  while not os.path.exists(go): time.sleep(0.01)\n  os._exit(1)\n';
  await journey.write('retried', 'app.toml', '[scaling]\nretry_on_crash = true\n');
  await journey.write('retried', 'main.py', code);
  const old = await journey.app('retried', 'ready');
  const { reader } = await journey.call('retried', 'once', {
    begun: journey.path('retried-begun'),
    go: journey.path('retried-go'),
  });
  await journey.fileSays('retried-begun');
  await journey.write('retried', 'app.toml', '');
  await until(async () => ((await journey.app('retried', 'ready')).version === old.version ? undefined : true));
  await writeFile(journey.path('retried-go'), '');
  expect((await read(reader)).outcome?.result?.toString()).toBe('"second"');
});

test('a folder without an entry point is announced as broken with the reason, and served when it has an entry point', async () => {
  await journey.write('entryless', 'app.py', 'def answer(): return 42\n');
  expect((await journey.app('entryless', 'broken')).error?.message).toContain(
    'no entry point: expected main.py, main.ts',
  );
  await journey.write('entryless', 'main.py', 'import app\ndef answer(): return app.answer()\n');
  await journey.app('entryless', 'ready');
  expect((await journey.run('entryless', 'answer', {})).outcome?.result?.toString()).toBe('42');
});

test('an app that lost its entry point keeps its version, and the reason is announced beside it', async () => {
  await journey.write('emptied', 'main.py', 'def answer(): return 1\n');
  await journey.write('emptied', 'notes.md', 'remains');
  await journey.app('emptied', 'ready');
  await rm(journey.path('apps/demo/emptied/main.py'));
  await until(async () => (await journey.app('emptied', 'ready')).failed?.error.message.includes('no entry point'));
  expect((await journey.run('emptied', 'answer', {})).outcome?.result?.toString()).toBe('1');
  await rm(journey.path('apps/demo/emptied'), { recursive: true });
  await until(async () => ((await journey.gateway.registry.apps('demo')).has('emptied') ? undefined : true));
});

test('a version that fails is announced beside the version that serves', async () => {
  await journey.write('mended', 'main.py', 'def answer(): return 1\n');
  const old = await journey.app('mended', 'ready');
  await journey.write('mended', 'main.py', 'import no_such_module\n');
  const { failed } = await until(async () => {
    const found = await journey.app('mended', 'ready');
    return found.failed && found;
  });
  expect(failed).toMatchObject({ version: expect.not.stringContaining(old.version) });
  expect(failed?.error.message).toContain('no_such_module');
  expect((await journey.run('mended', 'answer', {})).outcome?.result?.toString()).toBe('1');
  await journey.write('mended', 'main.py', 'def answer(): return 2\n');
  await until(async () => ((await journey.app('mended', 'ready')).version === old.version ? undefined : true));
  expect((await journey.app('mended', 'ready')).failed).toBeUndefined();
  expect((await journey.run('mended', 'answer', {})).outcome?.result?.toString()).toBe('2');
});
