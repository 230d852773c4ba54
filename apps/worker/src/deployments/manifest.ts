// Contract 7: an app's manifest: `app.toml`, or the hosted product's `cerebrium.toml` (sections with or without the prefix `cerebrium.`).
// An app without these files has the defaults.
import { readFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { MANIFEST_FILES, NODE_ENTRYPOINTS, PYTHON_ENTRYPOINT } from '@inference-proxy/contracts';
import { z } from 'zod';
import { type BuildKeys, buildCommandsOf, requirementOf } from './build-keys.ts';
import { type CustomServer, customServer, customServerSection } from './custom-server.ts';
import { type EntryPoint, findEntryPoint, type Language, nodeEntryPoint } from './entry-point.ts';
import { asTable, ManifestError, merged, type Sections, sectionsOf } from './manifest-text.ts';
import { refuseRuntimes } from './refused-runtimes.ts';
import { keysWithoutSchema } from './unused-keys.ts';

export { ManifestError } from './manifest-text.ts';

const GIB = 2 ** 30;

/** Default seconds for an app to start, and for a server that runs elsewhere to answer. */
const STARTUP_S = 600;
const ANSWER_S = 10;

/** The configuration of an app. Times are in milliseconds. */
export interface Manifest {
  /** The language of the functions. */
  readonly language: Language;
  /** The module's file, relative to the app's folder. */
  readonly entrypoint: string;
  /**
   * The interpreter or engine, absolute or relative to the app's folder. Absent: the app's `.venv`, else the `python3` of the worker; for
   * JavaScript, the Node of the worker. `bun` and `deno` are names on PATH.
   */
  readonly interpreter: string | undefined;
  /** Set if the app is a web server. `entrypoint` and `interpreter` then have no meaning. */
  readonly server: CustomServer | undefined;
  readonly replicas: number;
  /** The number of concurrent runs of a replica. */
  readonly replicaConcurrency: number;
  readonly startupTimeoutMs: number;
  /** The time limit of a run in the function. */
  readonly timeoutMs: number;
  /** The time for a cancelled run to stop by itself. */
  readonly cancelGraceMs: number;
  /** The memory limit of a replica and all its child processes. Absent: no limit. */
  readonly memoryBytes: number | undefined;
  readonly maxOutputBytes: number;
  /** The limit of a call's body. Absent: only the gateway's limit. */
  readonly maxBodyBytes?: number;
  readonly queueLimit: number;
  readonly queueTimeoutMs: number;
  readonly retryOnCrash: boolean;
  readonly preformatted: boolean;
  readonly debug: boolean;
  /** Whether arguments are checked and converted as their annotations require. */
  readonly validate: boolean;
  /** The time in which new calls move to a deployed version. 0: all calls at once. */
  readonly rollOutMs: number;
  /** Percent of failed calls that undoes such a roll-out. Absent: no share. */
  readonly abortOnErrorRate: number | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** By function: examples of its parameters, for the app's document. */
  readonly examples: Readonly<Record<string, readonly object[]>>;
}

/** A manifest, and the keys of its text that have no effect. */
export interface ReadManifest {
  readonly manifest: Manifest;
  /** The keys that matter only to the build of a deployed version. */
  readonly build: BuildKeys;
  /** Known keys without effect, as `section.key`: keys of the hosted product, and keys of this service that the rest of the manifest overrides. */
  readonly unused: readonly string[];
  /** Unknown keys, which are probably typing errors. */
  readonly unknown: readonly string[];
}

// Node's timers accept at most 2^31 - 1 ms. A longer timer fires at once.
const LONGEST_S = 2_000_000;
const seconds = z.number().nonnegative().max(LONGEST_S, `expected at most ${LONGEST_S} (seconds)`);
const positiveSeconds = z.number().positive().max(LONGEST_S, `expected at most ${LONGEST_S} (seconds)`);
const count = z.number().int().nonnegative().max(1_000_000);
const positiveCount = z.number().int().positive().max(1_000_000);
// A smaller limit does not hold an interpreter with a few libraries. A larger number is a mistake in the unit.
const gibibytes = z
  .number('expected a number of GiB')
  .min(0.0625, 'expected at least 0.0625 (GiB)')
  .max(16_384, 'expected at most 16384 (GiB)');
const insideFolder = z
  .string()
  .min(1)
  .refine((path) => !isAbsolute(path) && !path.split('/').includes('..'), 'expected a path inside the app folder');

const parametersOf = z.record(z.string(), z.unknown());

/** The sections and keys with their types and defaults. The tables in docs/apps have the same rows. */
export const sections = {
  deployment: z.looseObject({
    debug: z.boolean().default(false),
    deployment_initialization_timeout: positiveSeconds.optional(),
    abort_on_error_rate: z.number().min(0).max(100, 'expected a number of percent from 0 to 100').optional(),
  }),
  runtime: z.looseObject({ validate: z.boolean().default(true) }),
  'runtime.python': z.looseObject({
    entrypoint: insideFolder.default(PYTHON_ENTRYPOINT),
    python: z.string().min(1).optional(),
    venv: z.string().min(1).optional(),
  }),
  'runtime.node': z.looseObject({
    entrypoint: insideFolder.optional(),
    node: z.string().min(1).optional(),
    install_scripts: z.boolean().default(false),
  }),
  'runtime.custom': customServerSection,
  hardware: z.looseObject({
    gpu_count: count.default(0),
    /** A kind of GPU, or `CPU`. */
    compute: z.string().optional(),
    memory: gibibytes.optional(),
  }),
  scaling: z.looseObject({
    min_replicas: count.max(1_000).default(1),
    max_replicas: positiveCount.max(1_000).optional(),
    replica_concurrency: positiveCount.max(10_000).optional(),
    response_grace_period: positiveSeconds.default(900),
    timeout: positiveSeconds.optional(),
    startup_timeout: positiveSeconds.optional(),
    queue_limit: positiveCount.default(1_000),
    queue_timeout: positiveSeconds.default(600),
    cancel_grace: seconds.default(5),
    max_output_bytes: z.number().int().positive().optional(),
    max_body_bytes: z.number().int().positive().optional(),
    retry_on_crash: z.boolean().default(false),
    roll_out_duration_seconds: seconds.default(0),
  }),
  streaming: z.looseObject({ preformatted: z.boolean().default(true) }),
  'dependencies.pip': z.record(z.string(), z.string('expected a version in quotes, such as ">=2.0" or "latest"')),
  'dependencies.paths': z.looseObject({ pip: insideFolder.optional() }),
  'dependencies.apt': z.record(z.string(), z.unknown()),
  examples: z.record(
    z.string(),
    z.union([parametersOf, z.array(parametersOf).max(10)], 'expected a table of parameters'),
  ),
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.union([z.string(), z.number(), z.boolean()])),
} as const;

type Section = keyof typeof sections;

/** The functions of an app: their language, module and interpreter. */
type Functions = Pick<Manifest, 'language' | 'entrypoint' | 'interpreter'>;

/** Sections whose keys are names of the author's choice. */
const TABLES = ['env', 'examples', 'dependencies.pip', 'dependencies.apt'] as const;

/** Returns the keys of a section's schema, or `any` if the author chooses the keys. */
function keysOf(section: string): readonly string[] | 'any' {
  if (TABLES.some((open) => open === section)) return 'any';
  return section in sections ? Object.keys(sections[section as Exclude<Section, (typeof TABLES)[number]>].shape) : [];
}

/** Checks a section and returns its values. @param from the section of the manifest that is read as `name` */
function parseSection<S extends Section>(
  found: Sections,
  name: S,
  from: string = name,
): z.output<(typeof sections)[S]> {
  const checked = sections[name].safeParse(found.get(from) ?? {});
  if (checked.success) return checked.data as z.output<(typeof sections)[S]>;
  const reasons = checked.error.issues.map((issue) => `[${from}] ${issue.path.join('.')}: ${issue.message}`);
  throw new ManifestError(reasons.join('; '));
}

/** Returns the section that describes a web server: `[runtime.custom]`, or `[runtime.python]` if its entry point is a command. */
function serverSection(found: Sections): 'runtime.custom' | 'runtime.python' | undefined {
  if (found.has('runtime.custom')) return 'runtime.custom';
  return Array.isArray(asTable(found.get('runtime.python'))?.entrypoint) ? 'runtime.python' : undefined;
}

function serverOf(found: Sections, from: string): CustomServer {
  const section = parseSection(found, 'runtime.custom', from);
  try {
    return customServer(section);
  } catch (error) {
    throw new ManifestError(`[${from}] ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * Reads a manifest's text.
 *
 * @param text '' for an app without a manifest, which has all defaults
 * @param maxOutputBytes the limit of the service; a manifest can only lower it
 * @param entry the entry point that was found in the folder. Absent: `main.py`.
 * @throws ManifestError if a value has the wrong form or the service does not run the runtime
 */
export const parseManifest = (text: string, maxOutputBytes: number, entry?: EntryPoint): ReadManifest =>
  manifestOf(sectionsOf(text), maxOutputBytes, entry);

/** @param entry the entry point that was found in the folder. Absent: `main.py`. */
function manifestOf(found: Sections, maxOutputBytes: number, entry?: EntryPoint): ReadManifest {
  refuseRuntimes(found);
  oneRuntime(found);
  const deployment = parseSection(found, 'deployment');
  const serverIn = serverSection(found);
  const functions = functionsOf(found, serverIn !== undefined, entry);
  const server = serverIn && serverOf(found, serverIn);
  const hardware = parseSection(found, 'hardware');
  const scaling = parseSection(found, 'scaling');
  const streaming = parseSection(found, 'streaming');
  const env = parseSection(found, 'env');
  const startup =
    scaling.startup_timeout ??
    deployment.deployment_initialization_timeout ??
    (server?.url === undefined ? STARTUP_S : ANSWER_S);
  const replicas = Math.min(Math.max(1, scaling.min_replicas), scaling.max_replicas ?? Number.POSITIVE_INFINITY);
  // Only one process can listen on a fixed port.
  const single = server !== undefined && (server.url !== undefined || server.port !== undefined);
  const rest = keysWithoutSchema(found, (name) => keysOf(name === serverIn ? 'runtime.custom' : name));
  if (single && replicas > 1) rest.unused.push('scaling.min_replicas');
  if (server?.url !== undefined && hardware.memory !== undefined) rest.unused.push('hardware.memory');
  return {
    manifest: {
      ...functions,
      server,
      replicas: single ? 1 : replicas,
      replicaConcurrency: scaling.replica_concurrency ?? (asksForGpu(hardware) ? 1 : 100),
      startupTimeoutMs: startup * 1_000,
      timeoutMs: (scaling.timeout ?? scaling.response_grace_period) * 1_000,
      cancelGraceMs: scaling.cancel_grace * 1_000,
      memoryBytes: hardware.memory === undefined ? undefined : Math.floor(hardware.memory * GIB),
      maxOutputBytes: Math.min(scaling.max_output_bytes ?? maxOutputBytes, maxOutputBytes),
      ...(scaling.max_body_bytes !== undefined && { maxBodyBytes: scaling.max_body_bytes }),
      queueLimit: scaling.queue_limit,
      queueTimeoutMs: scaling.queue_timeout * 1_000,
      retryOnCrash: scaling.retry_on_crash,
      preformatted: streaming.preformatted,
      debug: deployment.debug,
      rollOutMs: scaling.roll_out_duration_seconds * 1_000,
      abortOnErrorRate: deployment.abort_on_error_rate,
      validate: parseSection(found, 'runtime').validate,
      examples: Object.fromEntries(
        Object.entries(parseSection(found, 'examples')).map(([name, value]) => [name, [value].flat()]),
      ),
      env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])),
    },
    build: buildOf(found),
    ...rest,
  };
}

function buildOf(found: Sections): BuildKeys {
  const pip = found.has('dependencies.pip')
    ? Object.entries(parseSection(found, 'dependencies.pip')).map(([name, version]) => requirementOf(name, version))
    : undefined;
  const { pip: pipFile } = parseSection(found, 'dependencies.paths');
  return {
    pip,
    pipFile,
    apt: Object.keys(parseSection(found, 'dependencies.apt')),
    installScripts: found.has('runtime.node') && parseSection(found, 'runtime.node').install_scripts,
    ...buildCommandsOf(found),
  };
}

const RUNTIMES = ['runtime.custom', 'runtime.python', 'runtime.node'];

function oneRuntime(found: Sections): void {
  const names = RUNTIMES.filter((name) => found.has(name)).map((name) => `[${name}]`);
  if (names.length > 1) throw new ManifestError(`${names.join(' and ')}: expected only one of them`);
}

/** Returns the functions' module and interpreter. For a web server, they have no meaning. */
function functionsOf(found: Sections, isServer: boolean, entry: EntryPoint | undefined): Functions {
  if (isServer) return { language: 'python', entrypoint: PYTHON_ENTRYPOINT, interpreter: undefined };
  if (found.has('runtime.node') || (entry?.language === 'node' && !found.has('runtime.python'))) {
    const { entrypoint = entry?.language === 'node' ? entry.file : undefined, node } = parseSection(
      found,
      'runtime.node',
    );
    if (entrypoint === undefined)
      throw new ManifestError(
        `[runtime.node]: the folder has no entry point: expected ${NODE_ENTRYPOINTS.join(', ')}, or main in package.json`,
      );
    return { language: 'node', entrypoint, interpreter: node };
  }
  const { entrypoint, python, venv } = parseSection(found, 'runtime.python');
  if (python !== undefined && venv !== undefined)
    throw new ManifestError('[runtime.python] python and venv: expected only one of them');
  return { language: 'python', entrypoint, interpreter: venv === undefined ? python : join(venv, 'bin', 'python') };
}

/** Returns whether the app needs a GPU. The hosted product's `compute` is a kind of GPU (`AMPERE_A10`, `HOPPER_H100`) or `CPU`. */
function asksForGpu({ gpu_count, compute = '' }: { gpu_count: number; compute?: string | undefined }): boolean {
  return gpu_count > 0 || !['', 'CPU'].includes(compute.trim().toUpperCase());
}

/**
 * Reads the manifest in an app's folder: `app.toml` is merged over `cerebrium.toml`, key by key.
 *
 * @throws ManifestError like {@link parseManifest}
 */
export async function readManifest(folder: string, maxOutputBytes: number): Promise<ReadManifest> {
  const names: string[] = [];
  let found: Sections = new Map();
  for (const name of MANIFEST_FILES) {
    const sections = await readSections(folder, name);
    if (sections === undefined) continue;
    names.push(name);
    found = merged(sections, found);
  }
  const entry = found.has('runtime.node') ? await nodeEntry(folder) : await findEntryPoint(folder);
  return named(names.join(' over '), () => manifestOf(found, maxOutputBytes, entry));
}

async function nodeEntry(folder: string): Promise<EntryPoint | undefined> {
  const file = await nodeEntryPoint(folder);
  return file === undefined ? undefined : { language: 'node', file };
}

async function readSections(folder: string, name: string): Promise<Sections | undefined> {
  const text = await readFile(join(folder, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new ManifestError(`${name} cannot be read: ${error.message}`);
  });
  return text === undefined ? undefined : named(name, () => sectionsOf(text));
}

/** Adds the file's name to the message of a ManifestError. */
function named<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ManifestError && name !== '' ? new ManifestError(`${name}: ${error.message}`) : error;
  }
}
