// Starts the whole service as containers for one test file, with its own project name, ports and keys. `down` removes it with its volumes.
import { execFile } from 'node:child_process';
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, RECEIVER_SECRET } from '@inference-proxy/supervisor';
import { Caller } from '../client/caller.ts';
import { root } from '../documents/markdown.ts';
import type { Engine } from './engine.ts';

const run = promisify(execFile);
const COMMAND_MS = 300_000;
const BUILD_MS = 600_000;
const OUTPUT_BYTES = 64 * 1024 * 1024;

export type ServiceName =
  | 'proxy'
  | 'proxy-exporter'
  | 'gateway'
  | 'gateway-spare'
  | 'worker'
  | 'acme-worker'
  | 'dispatcher'
  | 'redis'
  | 'receiver';

/** Returns a network of this process, so that two stacks can run at once. */
const edgePrefix = (): string => `10.${200 + (process.pid % 50)}.${process.pid % 250}`;
const FILES = ['docker-compose.yml', 'test/compose/receiver.yml', 'examples/image/docker-compose.yml'];

const lines = (settings: Readonly<Record<string, string>>): string =>
  Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

export class ComposeStack {
  /** The output of all commands. */
  transcript = '';
  readonly #project = `inference-proxy-test-${process.pid}`;

  private constructor(
    readonly engine: Engine,
    readonly port: number,
    readonly tlsPort: number,
    readonly caller: Caller,
    readonly acme: Caller,
    /** The proxy's address on the edge network. */
    readonly proxyAddress: string,
    readonly folder: string,
  ) {}

  /** Writes the keys with the operator's script, and the settings of the test. Starts no container. */
  static async prepare(engine: Engine, settings: Readonly<Record<string, string>>): Promise<ComposeStack> {
    const folder = await mkdtemp(join(tmpdir(), 'compose-'));
    const file = join(folder, 'env');
    await run(process.execPath, [join(root, 'scripts', 'secrets.mjs'), '--file', file], { cwd: root });
    const [port, tlsPort] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const prefix = edgePrefix();
    await appendFile(
      file,
      lines({
        HTTP_PORT: String(port),
        HTTPS_PORT: String(tlsPort),
        EDGE_PREFIX: prefix,
        RECEIVER_SECRET,
        ...settings,
      }),
    );
    const secret = /^JWT_SECRET=(.+)$/m.exec(await readFile(file, 'utf8'))?.[1] ?? '';
    const callers = [new Caller(port, secret), new Caller(port, secret, 'acme')] as const;
    return new ComposeStack(engine, port, tlsPort, ...callers, `${prefix}.2`, folder);
  }

  /** Adds settings to `.env`: the last line of a name counts. They apply with the next `up` or upgrade. */
  set(settings: Readonly<Record<string, string>>): Promise<void> {
    return appendFile(join(this.folder, 'env'), lines(settings));
  }

  /** Runs a compose command on this stack. Returns its output. @throws Error with the output if the command fails */
  async compose(
    args: readonly string[],
    timeout = COMMAND_MS,
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const [program, ...first] = this.engine.compose;
    return this.#said(program, [...first, ...this.#options, ...args], timeout, env);
  }

  /** Runs a script of package.json on this stack. */
  script(name: string, args: readonly string[]): Promise<string> {
    const file = join(root, 'scripts', `${name.replace(':', '-')}.mjs`);
    return this.#said(process.execPath, [file, ...args, ...this.#options], BUILD_MS, {});
  }

  /** Returns the name that compose gives to a volume. */
  volume(name: string): string {
    return `${this.#project}_${name}`;
  }

  get #options(): string[] {
    const files = FILES.flatMap((file) => ['--file', file]);
    return ['--env-file', join(this.folder, 'env'), '--project-name', this.#project, ...files];
  }

  /** Runs a command of the engine. Returns its output. */
  docker(args: readonly string[], timeout = COMMAND_MS): Promise<string> {
    return this.#said('docker', args, timeout, {});
  }

  build(...services: ServiceName[]): Promise<string> {
    return this.compose(['build', ...services], BUILD_MS);
  }

  /** Starts these services and their dependencies. The settings determine the number of containers. */
  up(services: readonly ServiceName[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    return this.compose(['up', '--detach', '--no-build', ...services], COMMAND_MS, env);
  }

  /** Returns the ids of a service's running containers. */
  async containers(service: ServiceName): Promise<string[]> {
    const ids = (await this.compose(['ps', '--quiet', service])).split('\n').filter(Boolean);
    const running = await Promise.all(
      ids.map(async (id) => (await this.docker(['inspect', '--format', '{{.State.Running}}', id])).trim() === 'true'),
    );
    return ids.filter((_, at) => running[at]);
  }

  /** Removes everything but the images. */
  async down(): Promise<void> {
    await this.compose(['down', '--volumes', '--timeout', '20']);
    await rm(this.folder, { recursive: true, force: true });
  }

  async #said(
    program: string,
    args: readonly string[],
    timeout: number,
    env: Readonly<Record<string, string>>,
  ): Promise<string> {
    // Variables of the test's environment must not replace settings that the file lacks.
    const { PATH, HOME, DOCKER_HOST } = process.env;
    const { stdout, stderr } = await run(program, args, {
      cwd: root,
      timeout,
      maxBuffer: OUTPUT_BYTES,
      env: { PATH, HOME, ...(DOCKER_HOST && { DOCKER_HOST }), ...env },
    });
    this.transcript += `$ ${[program, ...args].join(' ')}\n${stderr}`;
    return stdout;
  }
}
