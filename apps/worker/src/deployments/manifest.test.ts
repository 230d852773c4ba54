// Contract 7: the values of a manifest, their defaults and their errors.
import { expect, test } from '@jest/globals';
import { ManifestError, parseManifest } from './manifest.ts';

const LIMIT = 64 * 1024 * 1024;
const manifestOf = (text: string) => parseManifest(text, LIMIT).manifest;

test('a roll-out in steps has a duration and a percentage', () => {
  const text = '[scaling]\nroll_out_duration_seconds = 300\n[deployment]\nabort_on_error_rate = 2.5\n';
  expect(manifestOf(text)).toMatchObject({ rollOutMs: 300_000, abortOnErrorRate: 2.5 });
  expect(() => manifestOf('[deployment]\nabort_on_error_rate = 101\n')).toThrow(/abort_on_error_rate.*percent/);
  expect(() => manifestOf('[scaling]\nroll_out_duration_seconds = -1\n')).toThrow(ManifestError);
});

test('an app without a manifest runs main.py with the defaults', () => {
  expect(manifestOf('')).toEqual({
    language: 'python',
    entrypoint: 'main.py',
    interpreter: undefined,
    server: undefined,
    replicas: 1,
    replicaConcurrency: 100,
    startupTimeoutMs: 600_000,
    timeoutMs: 900_000,
    cancelGraceMs: 5_000,
    memoryBytes: undefined,
    maxOutputBytes: LIMIT,
    queueLimit: 1_000,
    queueTimeoutMs: 600_000,
    retryOnCrash: false,
    preformatted: true,
    debug: false,
    rollOutMs: 0,
    abortOnErrorRate: undefined,
    validate: true,
    env: {},
    examples: {},
  });
});

test.each([
  ['sections without a prefix', '[scaling]\nreplica_concurrency = 3\n[hardware]\ngpu_count = 1'],
  [
    'sections with the hosted product’s prefix',
    '[cerebrium.scaling]\nreplica_concurrency = 3\n[cerebrium.hardware]\ngpu_count = 1',
  ],
  ['both forms together', '[cerebrium.scaling]\nreplica_concurrency = 3\n[hardware]\ngpu_count = 1'],
])('%s give the same manifest', (_form, text) => {
  expect(manifestOf(text).replicaConcurrency).toBe(3);
});

test.each([
  ['one run at a time if the app has a GPU', '[hardware]\ngpu_count = 1', { replicaConcurrency: 1 }],
  [
    'a stated concurrency wins over the GPU',
    '[hardware]\ngpu_count = 1\n[scaling]\nreplica_concurrency = 4',
    { replicaConcurrency: 4 },
  ],
  ['response_grace_period is the time limit', '[scaling]\nresponse_grace_period = 1.5', { timeoutMs: 1_500 }],
  [
    'timeout wins over response_grace_period',
    '[scaling]\ntimeout = 2\nresponse_grace_period = 9',
    { timeoutMs: 2_000 },
  ],
  ['replicas start at min_replicas', '[scaling]\nmin_replicas = 3\nmax_replicas = 5', { replicas: 3 }],
  ['an app that scales to zero elsewhere keeps one replica', '[scaling]\nmin_replicas = 0', { replicas: 1 }],
  ['never more replicas than max_replicas', '[scaling]\nmin_replicas = 3\nmax_replicas = 2', { replicas: 2 }],
  ['startup_timeout', '[scaling]\nstartup_timeout = 7', { startupTimeoutMs: 7_000 }],
  [
    'the hosted product’s name for it',
    '[cerebrium.deployment]\ndeployment_initialization_timeout = 60',
    { startupTimeoutMs: 60_000 },
  ],
  ['memory is in GiB', '[hardware]\nmemory = 0.5', { memoryBytes: 512 * 1024 * 1024 }],
  ['a manifest may lower the limit of bodies', '[scaling]\nmax_body_bytes = 10', { maxBodyBytes: 10 }],
  ['a manifest may lower the output limit', '[scaling]\nmax_output_bytes = 10', { maxOutputBytes: 10 }],
  [
    'a manifest may not raise the output limit',
    `[scaling]\nmax_output_bytes = ${LIMIT * 2}`,
    { maxOutputBytes: LIMIT },
  ],
  ['the queue', '[scaling]\nqueue_limit = 2\nqueue_timeout = 3', { queueLimit: 2, queueTimeoutMs: 3_000 }],
  [
    'switches',
    '[scaling]\nretry_on_crash = true\n[streaming]\npreformatted = false\n[deployment]\ndebug = true',
    { retryOnCrash: true, preformatted: false, debug: true },
  ],
  ['a check that is disabled', '[runtime]\nvalidate = false', { validate: false }],
  [
    'a check that is disabled beside a runtime',
    '[runtime]\nvalidate = false\n[runtime.python]\nentrypoint = "run.py"',
    { validate: false, entrypoint: 'run.py' },
  ],
  [
    'one example of a function, and several',
    '[examples.greet]\nname = "Ada"\n[[examples.add]]\na = 1\n[[examples.add]]\na = 2',
    { examples: { greet: [{ name: 'Ada' }], add: [{ a: 1 }, { a: 2 }] } },
  ],
  ['plain environment values', '[env]\nA = "x"\nB = 2\nC = true', { env: { A: 'x', B: '2', C: 'true' } }],
  [
    'an interpreter',
    '[runtime.python]\nentrypoint = "app/run.py"\npython = "bin/py"',
    { entrypoint: 'app/run.py', interpreter: 'bin/py' },
  ],
  ['a virtual environment', '[runtime.python]\nvenv = "env"', { interpreter: 'env/bin/python' }],
])('%s', (_what, text, expected) => {
  expect(manifestOf(text)).toMatchObject(expected);
});

test('an app for the hosted product is read, and its keys without effect are listed', () => {
  const text = `[cerebrium.deployment]
name = "stream"
python_version = "3.12"
include = ["./*"]
exclude = [".*"]
shell_commands = []
[cerebrium.hardware]
cpu = 2
memory = 8.0
compute = "CPU"
[cerebrium.scaling]
min_replicas = 0
max_replicas = 2
cooldown = 30
[cerebrium.dependencies.pip]
torch = "latest"`;
  const { manifest, unused, unknown } = parseManifest(text, LIMIT);
  expect(manifest).toMatchObject({ replicas: 1, replicaConcurrency: 100, memoryBytes: 8 * 2 ** 30 });
  expect(unused).toEqual(expect.arrayContaining(['deployment.name', 'hardware.cpu', 'scaling.cooldown']));
  expect(unknown).toEqual([]);
});

test('unknown keys are listed', () => {
  const { unknown } = parseManifest('top = 1\n[scaling]\nreplica_concurency = 2\n[sclaing]\nx = 1', LIMIT);
  expect(unknown).toEqual(['top', 'scaling.replica_concurency', 'sclaing.x']);
});

test.each([
  ['text that is not TOML', '[scaling', /not TOML/],
  ['a mistyped value', '[scaling]\ntimeout = "5"', /\[scaling\] timeout/],
  ['a memory that is not a number', '[hardware]\nmemory = "2GB"', /\[hardware\] memory: expected a number of GiB/],
  ['a memory too small for an interpreter', '[hardware]\nmemory = 0', /\[hardware\] memory: expected at least 0\.0625/],
  ['a memory in megabytes', '[hardware]\nmemory = 32_768', /\[hardware\] memory: expected at most 16384/],
  [
    'a time that is too long for a timer',
    '[scaling]\ntimeout = 9_000_000',
    /\[scaling\] timeout: expected at most 2000000/,
  ],
  [
    'a module outside the folder',
    '[runtime.python]\nentrypoint = "../other/main.py"',
    /entrypoint: expected a path inside/,
  ],
  ['a section that is not a table', 'scaling = 3', /\[scaling\]/],
  ['two interpreters', '[runtime.python]\npython = "a"\nvenv = "b"', /python and venv/],
  ['an unknown runtime', '[runtime.ruby]', /\[runtime\.ruby\] is not a runtime/],
  ['an invalid name of an environment variable', '[env]\n"A B" = "x"', /\[env\]/],
])('%s is rejected with a reason', (_what, text, message) => {
  expect(() => manifestOf(text)).toThrow(ManifestError);
  expect(() => manifestOf(text)).toThrow(message);
});
