// The whole service as containers, for one test file: its own project name, ports and keys; gone afterwards, with its volumes.
import { execFile } from 'node:child_process';
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Caller } from '../client/caller.ts';
import { root } from '../documents/markdown.ts';
import { freePort } from '../stack/ports.ts';
import { RECEIVER_SECRET } from '../stack/services.ts';
import type { Engine } from './engine.ts';

const run = promisify(execFile);
const COMMAND_MS = 300_000;
const BUILD_MS = 600_000;
const OUTPUT_BYTES = 64 * 1024 * 1024;

export type ServiceName = 'proxy' | 'gateway' | 'worker' | 'acme-worker' | 'dispatcher' | 'redis' | 'receiver';

export class ComposeStack {
  /** All that the commands have printed. */
  transcript = '';
  readonly #project = `inference-proxy-test-${process.pid}`;

  private constructor(
    readonly engine: Engine,
    readonly port: number,
    readonly tlsPort: number,
    readonly caller: Caller,
    readonly acme: Caller,
    private readonly folder: string,
  ) {}

  /** Writes the keys as an operator does, and the settings that a test needs. Nothing is started. */
  static async prepare(engine: Engine, settings: Readonly<Record<string, string>>): Promise<ComposeStack> {
    const folder = await mkdtemp(join(tmpdir(), 'compose-'));
    const file = join(folder, 'env');
    await run(process.execPath, [join(root, 'scripts', 'secrets.mjs'), '--file', file], { cwd: root });
    const [port, tlsPort] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const all = { HTTP_PORT: String(port), HTTPS_PORT: String(tlsPort), RECEIVER_SECRET, ...settings };
    await appendFile(
      file,
      Object.entries(all)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    );
    const secret = /^JWT_SECRET=(.+)$/m.exec(await readFile(file, 'utf8'))?.[1] ?? '';
    return new ComposeStack(engine, port, tlsPort, new Caller(port, secret), new Caller(port, secret, 'acme'), folder);
  }

  /** A compose command on this stack; its output. @throws Error with its output where it fails */
  async compose(
    args: readonly string[],
    timeout = COMMAND_MS,
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const [program, ...first] = this.engine.compose;
    const files = ['docker-compose.yml', 'test/compose/receiver.yml', 'examples/image/docker-compose.yml'];
    const stack = ['--env-file', join(this.folder, 'env'), '--project-name', this.#project];
    const whole = [...first, ...stack, ...files.flatMap((file) => ['--file', file]), ...args];
    return this.#said(program, whole, timeout, env);
  }

  /** A command of the engine's; its output. */
  docker(args: readonly string[], timeout = COMMAND_MS): Promise<string> {
    return this.#said('docker', args, timeout, {});
  }

  build(...services: ServiceName[]): Promise<string> {
    return this.compose(['build', ...services], BUILD_MS);
  }

  /** Brings up so many of each, and no others. */
  up(scale: Partial<Record<ServiceName, number>>, env: Readonly<Record<string, string>> = {}): Promise<string> {
    const services = Object.keys(scale);
    const scales = Object.entries(scale).flatMap(([service, count]) => ['--scale', `${service}=${count}`]);
    return this.compose(['up', '--detach', '--no-build', ...scales, ...services], COMMAND_MS, env);
  }

  /** The ids of a service's running containers. */
  async containers(service: ServiceName): Promise<string[]> {
    const ids = (await this.compose(['ps', '--quiet', service])).split('\n').filter(Boolean);
    const running = await Promise.all(
      ids.map(async (id) => (await this.docker(['inspect', '--format', '{{.State.Running}}', id])).trim() === 'true'),
    );
    return ids.filter((_, at) => running[at]);
  }

  /** Removes everything it has made, but the images. */
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
    // Nothing of ours may stand in for a setting that the file lacks.
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
