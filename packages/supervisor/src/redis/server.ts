// Starts the stack's Redis as a child of this process, with the settings that the run store requires.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { guard, type Release } from '../parts/guard.ts';
import { freePort } from '../ports.ts';
import { obtainRedis, type RedisBinary, redisEnvironment } from './binary.ts';
import { type RedisPasswords, type RedisUser, usersFile } from './users.ts';

const STOP_LIMIT_MS = 10_000;
const START_ATTEMPTS = 5;
const KEPT_LINES = 20;
/** `sun_path` has 108 bytes on Linux and 104 on macOS. The last byte is a zero. */
const SOCKET_PATH_LIMIT = 103;

export interface RedisOptions {
  /** Folder of its data, and of its socket unless `socket` names another path. Created if missing. */
  readonly dir: string;
  /** TCP port on 127.0.0.1. Default or 0: a free port. */
  readonly port?: number;
  /** Whether a server with a socket also listens on the port (default true). */
  readonly tcp?: boolean;
  /** Creates the users of deploy/redis/users.acl. Without passwords, every client has all rights. */
  readonly passwords?: RedisPasswords;
  /** Path of the Unix socket. Default: `<dir>/redis.sock` if that path is short enough. false: TCP only. */
  readonly socket?: string | false;
  /** Whether writes are kept in an append-only file (default true). */
  readonly appendonly?: boolean;
  /** Further arguments, such as `['--maxmemory', '50mb']`. */
  readonly args?: readonly string[];
  /** Seconds for which Redis outlives a kill of this process (default 3: its clients finish first). */
  readonly graceS?: number;
  /** Folder that is also removed if this process is killed. */
  readonly removeWithUs?: string;
  readonly binary?: RedisBinary;
  readonly say?: (text: string) => void;
}

export interface RunningRedis {
  /** The REDIS_URL, of the user `admin` if there are users. A server with a socket has `redis+unix://` (8 to 16 % faster). */
  readonly url: string;
  readonly pid: number;
  readonly port: number;
  readonly socket?: string;
  /** Settles with the reason when the server has exited, also without a stop. */
  readonly exited: Promise<string>;
  /** Ends the server after it has written its file. Kills it after 10 s. May be called twice. */
  stop(): Promise<void>;
  /** Ends the server by SIGKILL, like a crash. */
  kill(): Promise<void>;
}

/** Returns the path of the Unix socket of a server in `dir`, or undefined if that path would be too long. */
function socketOf({ dir, socket = join(resolve(dir), 'redis.sock') }: RedisOptions): string | undefined {
  return socket !== false && Buffer.byteLength(socket) <= SOCKET_PATH_LIMIT ? socket : undefined;
}

/** Returns the REDIS_URL that a server with these options will have. @param user ignored without `passwords` */
export function redisUrlOf(options: RedisOptions & { readonly port: number }, user: RedisUser = 'admin'): string {
  const socket = socketOf(options);
  const login = options.passwords ? `${user}:${options.passwords[user]}@` : '';
  if (socket === undefined) return `redis://${login}127.0.0.1:${options.port}`;
  // A URL with a user needs a host.
  return `redis+unix://${login && `${login}localhost`}${encodeURI(socket)}`;
}

/** The settings that the run store requires of every Redis. docker-compose.yml has the same settings. */
export const redisArguments = [
  ...['--appendfsync', 'everysec'],
  // Snapshots would fork at random times, and the append-only file already holds all data.
  ...['--save', ''],
  ...['--maxmemory-policy', 'noeviction'],
  // At the default of 10, an idle server rounds delayed jobs up to steps of 100 ms.
  ...['--hz', '100'],
  ...['--client-output-buffer-limit', 'pubsub', '256mb', '64mb', '60'],
  // A run's record is a small hash. One field over 64 bytes, the default, would double its size.
  ...['--hash-max-listpack-value', '4096'],
] as const;

/** Returns the REDIS_URL of the same user at another address, such as a proxy's. */
export function redisUrlAt(url: string, port: number): string {
  const { username, password } = new URL(url);
  return `redis://${username}:${password}@127.0.0.1:${port}`;
}

const usersFileOf = ({ dir }: RedisOptions): string => join(resolve(dir), 'users.acl');

function settings(options: RedisOptions, port: number, socket: string | undefined): string[] {
  const tcp = socket === undefined || options.tcp !== false;
  return [
    ...['--dir', resolve(options.dir), '--port', String(tcp ? port : 0), '--bind', '127.0.0.1', '--daemonize', 'no'],
    ...(socket === undefined ? [] : ['--unixsocket', socket, '--unixsocketperm', '700']),
    ...(options.passwords ? ['--aclfile', usersFileOf(options)] : []),
    ...['--appendonly', options.appendonly === false ? 'no' : 'yes'],
    ...redisArguments,
    ...(options.args ?? []),
  ];
}

/** Matches the messages of a server that cannot read its own file. A full disk or a crash of the machine may damage the file. */
const UNREADABLE = /reading the (?:append only file|RDB base file)|truncated file is not the last/;

/** @param lines the server's last lines */
function whyNotStarted(how: string, lines: readonly string[], { path, libraries }: RedisBinary, dir: string): string {
  if (!lines.some((line) => UNREADABLE.test(line))) return `Redis did not start (${how}): ${lines.join(' | ')}`;
  const folder = join(resolve(dir), 'appendonlydir');
  const checker = basename(path).startsWith('valkey') ? 'valkey-check-aof' : 'redis-check-aof';
  const command = libraries === undefined ? checker : `LD_LIBRARY_PATH=${libraries} ${join(dirname(path), checker)}`;
  return (
    `Redis cannot read its file in ${folder}. Copy that folder, then remove the damaged data, and all data after it, with: ` +
    `${command} --fix ${join(folder, 'appendonly.aof.manifest')}; or remove the folder to start without data`
  );
}

/** Resolves when the server accepts connections. Rejects with the reason if the server exits first. */
async function ready(child: ChildProcess, lines: string[], binary: RedisBinary, dir: string): Promise<void> {
  if (!child.stdout) throw new Error('the Redis process has no output pipe');
  await new Promise<void>((accept, refuse) => {
    child.once('error', refuse);
    // 'close' comes after all output has been read.
    child.once('close', (code, signal) => {
      refuse(new Error(whyNotStarted(signal ?? `exit code ${code}`, lines, binary, dir)));
    });
    createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }).on('line', (line) => {
      lines.push(line);
      if (lines.length > KEPT_LINES) lines.shift();
      // The wording of this line differs between a socket and a port.
      if (/ready to accept connections/i.test(line)) accept();
    });
  });
}

async function attempt(binary: RedisBinary, options: RedisOptions): Promise<RunningRedis> {
  const port = options.port || (await freePort());
  const socket = socketOf(options);
  const child = spawn(binary.path, settings(options, port, socket), {
    env: redisEnvironment(binary),
    stdio: ['ignore', 'pipe', 'pipe'],
    // A separate process group, so that a Ctrl-C in the terminal does not end Redis before its clients.
    detached: true,
  });
  const lines: string[] = [];
  child.stderr.resume();
  let release: Release = () => {};
  const exited = new Promise<string>((settle) => {
    child.once('error', (error) => settle(error.message));
    child.once('exit', (code, signal) => {
      release();
      settle(signal === null ? `exit code ${code}: ${lines.at(-1) ?? ''}` : `signal ${signal}`);
    });
  });
  if (child.pid !== undefined) release = guard(child.pid, options.graceS ?? 3, options.removeWithUs);
  await ready(child, lines, binary, options.dir);
  // A running server must not keep the event loop alive. Its owner stops it, or the guard does.
  child.unref();
  for (const pipe of [child.stdout, child.stderr]) (pipe as unknown as { unref(): void }).unref();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.ref();
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    await exited;
    clearTimeout(timer);
    if (socket !== undefined) await rm(socket, { force: true });
  };
  return {
    url: redisUrlOf({ ...options, port }),
    pid: child.pid as number,
    port,
    ...(socket !== undefined && { socket }),
    exited,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

/**
 * Starts a Redis and resolves when it answers.
 *
 * @throws NoRedis if no program can be found; Error with the server's last lines, or with the next step if Redis cannot read its file
 */
export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const binary = options.binary ?? (await obtainRedis(options.say ?? (() => {})));
  await mkdir(options.dir, { recursive: true });
  // The folder holds the socket and the data, so other users of this machine may not enter it.
  await chmod(options.dir, 0o700);
  if (options.passwords) await writeFile(usersFileOf(options), usersFile(options.passwords), { mode: 0o600 });
  for (let tried = 1; ; tried++) {
    try {
      return await attempt(binary, options);
    } catch (error) {
      // Another process may have taken the free port before Redis used it.
      const taken = error instanceof Error && error.message.includes('Address already in use');
      if (!taken || options.port || tried === START_ATTEMPTS) throw error;
    }
  }
}
