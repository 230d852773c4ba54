// A private Redis for a test file: real, empty, removed afterwards, and unreliable on request.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { obtainRedis, type RunningRedis, startRedis } from '@inference-proxy/supervisor';

export interface TestRedis {
  readonly url: string;
  readonly pid: number;
  readonly port: number;
  readonly socket?: string;
  /** Stops Redis from answering (SIGSTOP) without closing a connection. */
  pause(): void;
  resume(): void;
  /** Ends Redis, by a crash if `kill` is set, and starts it at the same address. Without `persist` it starts empty. */
  restart(how?: { kill?: boolean }): Promise<void>;
  /** Ends Redis by a crash. `restart` starts it again. */
  kill(): Promise<void>;
  /** Ends Redis and removes its folder. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts a server in a temporary folder. Call `stop` in `afterAll`. If the test process is killed, its server ends, too.
 *
 * @param options.persist keep writes over a restart (append-only file)
 * @param options.tcp use no Unix socket, for tests of connections
 */
export async function testRedis(
  options: { persist?: boolean; tcp?: boolean; args?: readonly string[] } = {},
): Promise<TestRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'redis-'));
  const binary = await obtainRedis((text) => process.stderr.write(`${text}\n`));
  const start = (port?: number): Promise<RunningRedis> =>
    startRedis({
      dir,
      binary,
      appendonly: options.persist ?? false,
      graceS: 0,
      removeWithUs: dir,
      args: options.args ?? [],
      ...(options.tcp && { socket: false }),
      ...(port !== undefined && { port }),
    });
  let server = await start();
  return {
    get url() {
      return server.url;
    },
    get pid() {
      return server.pid;
    },
    port: server.port,
    ...(server.socket !== undefined && { socket: server.socket }),
    pause: () => void process.kill(server.pid, 'SIGSTOP'),
    resume: () => void process.kill(server.pid, 'SIGCONT'),
    async restart(how = {}) {
      await (how.kill ? server.kill() : server.stop());
      server = await start(server.port);
    },
    kill: () => server.kill(),
    async stop() {
      // A paused process obeys SIGTERM only after SIGCONT, so Redis is killed.
      await server.kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
