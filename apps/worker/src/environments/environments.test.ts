// Contract 7, "Dependencies": environments of Python, built with real tools from an index on this machine.
import { execFile } from 'node:child_process';
import { lstat, lutimes, mkdir, readdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PackageIndex } from '@inference-proxy/test/package-index';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pythonIn, Versions } from './testing/unpacked.ts';

let index: PackageIndex;
let versions: Versions;
beforeAll(async () => {
  index = await PackageIndex.start();
  versions = await Versions.make();
  index.addWheel('hello', '1.0', 'said = "one"\n');
  index.addWheel('hello', '2.0', 'said = "two"\n', ['deeper']);
  index.addWheel('deeper', '1.0', 'depth = 2\n');
});
afterAll(async () => {
  await index?.stop();
  await versions?.remove();
});

const environments = (options: Parameters<Versions['environments']>[1] = {}) =>
  versions.environments({ PIP_INDEX_URL: index.url() }, options);
const SAID = 'import hello; print(hello.said)';

test.each([
  ['requirements.txt', { 'requirements.txt': '# comment\nhello==1.0  # old\n' }, 'one'],
  ['[dependencies.pip]', { 'app.toml': '[dependencies.pip]\nhello = "==1.0"' }, 'one'],
  [
    '[dependencies.pip]',
    { 'cerebrium.toml': '[cerebrium.dependencies.pip]\nhello = "latest"', 'requirements.txt': 'none' },
    'two',
  ],
  [
    'more/list.txt',
    {
      'app.toml': '[dependencies.paths]\npip = "more/list.txt"',
      'more/list.txt': '-r inner.txt\n-c ../limits.txt\n',
      'more/inner.txt': 'hello\n',
      'limits.txt': 'hello<2\n',
    },
    'one',
  ],
  ['pyproject.toml', { 'pyproject.toml': '[project]\nname = "x"\ndependencies = ["hello==1.0"]' }, 'one'],
])('the packages of %s are installed', async (source, files, said) => {
  const prepared = await versions.prepare(environments(), { 'main.py': '', ...files });
  expect(await pythonIn(prepared, SAID)).toBe(said);
  expect(prepared.lines).toContainEqual(
    expect.stringMatching(new RegExp(`1 line of ${source.replace(/[[\]]/g, '.')}$`)),
  );
});

test('a version without a list of packages has no environment, and neither has a list without packages', async () => {
  const files: Record<string, string>[] = [
    { 'main.py': '' },
    { 'main.py': '', 'requirements.txt': '\n# nothing\n' },
    { 'main.py': '', 'pyproject.toml': '[tool.ruff]\nline-length = 100' },
    { 'main.ts': '', 'requirements.txt': 'hello' },
    { 'app.toml': '[runtime.custom]\nurl = "http://127.0.0.1:1"', 'requirements.txt': 'hello' },
  ];
  for (const one of files) {
    const { folder, lines } = await versions.prepare(environments(), one);
    expect(lines).toEqual([]);
    expect((await readdir(folder)).sort()).toEqual(Object.keys(one).sort());
  }
});

test.each([
  ['a folder .venv', { '.venv/mine': '' }, 'the app brings .venv'],
  [
    'an interpreter',
    { 'app.toml': '[runtime.python]\npython = "/usr/bin/python3"' },
    'the manifest names an interpreter',
  ],
])('an app that brings %s keeps it', async (_, files, why) => {
  const all = { 'main.py': '', 'requirements.txt': 'hello', ...files };
  const { folder, lines } = await versions.prepare(environments(), all as Record<string, string>);
  expect(lines).toEqual([`no packages are installed: ${why}`]);
  expect((await readdir(folder)).length).toBe(3);
});

test('an app with a folder .venv.new gets its environment', async () => {
  const files = { 'main.py': '', '.venv.new/x': '', 'requirements.txt': 'hello==1.0' };
  expect(await pythonIn(await versions.prepare(environments(), files), SAID)).toBe('one');
});

test('a web server gets its environment too', async () => {
  const files = { 'app.toml': '[runtime.custom]\nentrypoint = "python server.py"', 'requirements.txt': 'hello==1.0' };
  expect(await pythonIn(await versions.prepare(environments(), files), SAID)).toBe('one');
});

test('versions of two projects with the same list share one environment, which is built once', async () => {
  index.addWheel('shared', '1.0', '');
  const own = environments();
  const files = { 'main.py': '', 'requirements.txt': 'shared' };
  const all = await Promise.all(['one', 'two', 'two'].map((project) => versions.prepare(own, files, { project })));
  const later = await versions.prepare(environments(), { ...files, 'main.py': '# changed' });
  expect(later.lines).toContain('the environment exists already');
  const places = await Promise.all([...all, later].map(({ folder }) => realpath(join(folder, '.venv'))));
  expect(new Set(places).size).toBe(1);
  expect(index.downloads('shared')).toBe(1);
  // Each of them sees the output of the build.
  for (const { lines } of all) expect(lines.join('\n')).toContain('shared');
});

test('a list with a path in the app’s folder belongs to one version of one app', async () => {
  const files = (said: string) => ({
    'main.py': '',
    'requirements.txt': './lib\n',
    'lib/pyproject.toml':
      '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "own"\nversion = "1"',
    'lib/backend.py': `import zipfile
def build_wheel(folder, settings=None, metadata=None):
    with zipfile.ZipFile(f"{folder}/own-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("own.py", "said = '${said}'")
        wheel.writestr("own-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: own\\nVersion: 1\\n")
        wheel.writestr("own-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("own-1.dist-info/RECORD", "own.py,,\\n")
    return "own-1-py3-none-any.whl"
`,
  });
  const own = environments();
  for (const said of ['a', 'b']) {
    const prepared = await versions.prepare(own, files(said));
    expect(await pythonIn(prepared, 'import own; print(own.said)')).toBe(said);
    expect((await lstat(join(prepared.folder, 'main.py'))).isFile()).toBe(true);
  }
});

test.each([
  ['-r ../../etc/passwd', /requirements\.txt names "\.\.\/\.\.\/etc\/passwd": expected a path below/],
  ['--requirement=/etc/passwd', /names "\/etc\/passwd"/],
  ['-c/etc/passwd', /names "\/etc\/passwd"/],
  ['-r https://127.0.0.1/list.txt', /names "https:/],
  ['-e ..', /names "\.\."/],
  ['--editable ../other', /names "\.\.\/other"/],
  ['/etc', /names "\/etc"/],
  ['x @ file:///etc', /names "file:\/\/\/etc"/],
  ['git+file:///etc#egg=x', /names "git\+file:/],
  ['--find-links /etc', /names "\/etc"/],
  ['-f file:///etc', /names "file:/],
  ['linked/lib', /names "linked\/lib"/],
  ['\\\n-\\\nr ../secret', /names "\.\.\/secret"/],
  ['-r none.txt', /none\.txt does not exist/],
  ['./none', /which does not exist/],
  ['-r .', /cannot be read: EISDIR/],
])('the hostile line %j is refused before a tool runs', async (line, message) => {
  const folder = join(versions.root, 'hostile', Buffer.from(line).toString('hex'));
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'main.py'), '');
  await writeFile(join(folder, 'requirements.txt'), line);
  await promisify(execFile)('ln', ['-s', '/usr', join(folder, 'linked')]);
  await expect(versions.again(environments(), folder)).rejects.toThrow(message);
});

test('a build that fails has the reason of the tool, and leaves nothing behind', async () => {
  const files = { 'main.py': '', 'requirements.txt': 'absent' };
  const failed = versions.prepare(environments(), files);
  await expect(failed).rejects.toThrow(/^pip ended with exit code 1: .*No matching distribution.*absent/);
  const left = await readdir(join(versions.root, 'environments'));
  expect(left.filter((name) => name.includes('.')).length).toBe(left.filter((name) => !name.includes('.')).length);
  // The same content builds again.
  index.addWheel('absent', '1', '');
  await versions.prepare(environments(), files);
});

test('the folder of a killed build, and an environment that was unused for a month, are removed at the next start', async () => {
  const files = { 'main.py': '', 'requirements.txt': 'hello==1.0' };
  const folder = join(versions.root, 'cleaned');
  const first = await versions.prepare(environments({ folder }), files);
  const names = await readdir(folder);
  const key = names.find((name) => !name.includes('.')) as string;
  await mkdir(join(folder, 'abc.killed'));
  const kept = await versions.again(environments({ folder }), first.folder);
  expect(kept.lines).toContain('the environment exists already');
  expect((await readdir(folder)).sort()).toEqual(names.sort());
  const long = new Date(Date.now() - 31 * 24 * 3_600_000);
  await lutimes(join(folder, key), long, long);
  const again = await versions.again(environments({ folder }), first.folder);
  expect(again.lines).toContain('running pip');
  expect(await pythonIn(again, SAID)).toBe('one');
  expect(await readdir(folder)).toHaveLength(2);
});

test('a build over its time limit fails with the name of the setting', async () => {
  const late = environments({ limits: { timeoutMs: 50 } });
  await expect(versions.prepare(late, { 'main.py': '', 'requirements.txt': 'hello==2' })).rejects.toThrow(
    /exceeded the build's time limit of 0\.05 s \(BUILD_TIMEOUT_S\)/,
  );
});

test('a build over its memory limit fails with the name of the setting', async () => {
  index.addSource('greedy', '1', 'import time\nheld = b"x" * (600 * 2**20)\ntime.sleep(600)');
  const small = environments({ limits: { memoryBytes: 256 * 2 ** 20 } });
  await expect(versions.prepare(small, { 'main.py': '', 'requirements.txt': 'greedy' })).rejects.toThrow(
    "pip exceeded the build's memory limit of 256 MiB (BUILD_MEMORY_BYTES)",
  );
});

test('credentials of an index reach the index, and neither the log nor the reason', async () => {
  index.addSource('chatty', '1', 'import os\nraise RuntimeError("index: " + os.environ["PIP_INDEX_URL"])');
  const own = versions.environments({ PIP_INDEX_URL: index.url('robot:secret-word') });
  const lines: string[] = [];
  const log = (more: readonly string[]): void => void lines.push(...more);
  const inList = `--extra-index-url ${index.url('someone:other-secret')}\nchatty\n`;
  const failed = versions.prepare(own, { 'main.py': '', 'requirements.txt': inList }, { log });
  const { message } = (await failed.catch((error: Error) => error)) as Error;
  expect([...index.credentials].sort()).toEqual(
    ['robot:secret-word', 'someone:other-secret'].map((text) => `Basic ${Buffer.from(text).toString('base64')}`).sort(),
  );
  expect(lines.join('\n')).toContain('***@127.0.0.1');
  expect(lines.join('\n') + message).not.toMatch(/secret-word|other-secret/);
});

test('a build that nobody waits for is stopped, and the next build begins anew', async () => {
  index.addWheel('slow', '1', '');
  index.hold();
  const [one, two] = [new AbortController(), new AbortController()];
  const own = environments();
  const files = { 'main.py': '', 'requirements.txt': 'slow' };
  const requested = index.requested();
  const first = versions.prepare(own, files, { signal: one.signal });
  const second = versions.prepare(own, files, { signal: two.signal });
  await requested;
  one.abort();
  await expect(first).rejects.toThrow('aborted');
  two.abort();
  await expect(second).rejects.toThrow('aborted');
  index.release();
  await versions.prepare(own, files);
  expect(index.downloads('slow')).toBe(1);
});

test('a project has one build at a time, and another project does not wait for it', async () => {
  index.addWheel('patient', '1', '');
  index.hold();
  const own = environments();
  const stop = new AbortController();
  const requested = index.requested();
  const { signal } = stop;
  const first = versions.prepare(own, { 'main.py': '', 'requirements.txt': 'patient' }, { project: 'a', signal });
  await requested;
  const lines: string[] = [];
  const log = (more: readonly string[]): void => void lines.push(...more);
  const second = versions.prepare(
    own,
    { 'main.py': '', 'requirements.txt': 'patient>0' },
    { project: 'a', log, signal },
  );
  const other = index.requested();
  const third = versions.prepare(own, { 'main.py': '', 'requirements.txt': 'patient<9' }, { project: 'b', signal });
  await other;
  expect(lines.filter((line) => line.startsWith('running'))).toEqual([]);
  stop.abort();
  await Promise.allSettled([first, second, third]);
  index.release();
});

test('an interpreter without pip makes environments with pip', async () => {
  const bare = join(versions.root, 'bare');
  await promisify(execFile)('python3', ['-m', 'venv', '--without-pip', bare]);
  const PATH = `${join(bare, 'bin')}:${process.env.PATH}`;
  const own = versions.environments({ PIP_INDEX_URL: index.url(), PATH });
  const prepared = await versions.prepare(own, { 'main.py': '', 'requirements.txt': 'hello==1.0' });
  expect(await pythonIn(prepared, SAID)).toBe('one');
});

test('over the disk limit, the environments of running versions stay, and the others go', async () => {
  const folder = join(versions.root, 'bounded');
  const files = (line: string) => ({ 'main.py': '', 'requirements.txt': line });
  const linked = async () => (await readdir(folder)).filter((name) => !name.includes('.')).length;
  const own = environments({ folder, maxBytes: 1 });
  const first = await versions.prepare(own, files('hello==1.0'));
  own.keep(first.folder, { state: 'ready' });
  const second = await versions.prepare(own, files('hello==2.0'));
  own.keep(second.folder, { state: 'closed' });
  await versions.prepare(own, files('deeper==1.0'));
  expect(await linked()).toBe(2);
  expect(await pythonIn(first, SAID)).toBe('one');
  expect((await versions.again(own, second.folder)).lines).toContain('running pip');
  expect(await pythonIn(second, SAID)).toBe('two');
  // Another process knows the environments from the folder. Nothing uses them there.
  await versions.prepare(environments({ folder, maxBytes: 1 }), files('deeper'));
  expect(await linked()).toBe(1);
});
