// Embedded Redis, second half: a real server as a child of ours, with the settings the run store is designed for.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { guard, type Release } from './guard.ts';
import { freePort } from './ports.ts';
import { obtainRedis, type RedisBinary, redisEnvironment } from './redis-binary.ts';
import { type RedisPasswords, type RedisUser, usersFile } from './redis-users.ts';

const STOP_LIMIT_MS = 10_000;
const START_ATTEMPTS = 5;
const KEPT_LINES = 20;
/** sun_path holds 108 bytes on Linux and 104 on macOS, the last one a zero. */
const SOCKET_PATH_LIMIT = 103;

export interface RedisOptions {
  /** Its data, and its socket unless another is given. Made where missing. */
  readonly dir: string;
  /** TCP port on 127.0.0.1; 0 or absent: a free one. */
  readonly port?: number;
  /** Whether a server with a socket listens on the port, too (default true). */
  readonly tcp?: boolean;
  /** Makes the users of deploy/redis/users.acl. Without passwords, every client has all rights. */
  readonly passwords?: RedisPasswords;
  /** Path of the Unix socket; absent: `<dir>/redis.sock` where such a path is short enough; false: TCP only. */
  readonly socket?: string | false;
  /** Whether writes are kept in an append-only file (default true). */
  readonly appendonly?: boolean;
  /** More arguments, such as `['--maxmemory', '50mb']`. */
  readonly args?: readonly string[];
  /** How long it outlives us when we are killed, seconds (default 3: those who use it finish first). */
  readonly graceS?: number;
  /** Removed, too, when we are killed. */
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
  /** Settles when the server has exited, asked or not, with its reason in words. */
  readonly exited: Promise<string>;
  /** Asks it to write its file and go; kills it after 10 s. Harmless when done twice. */
  stop(): Promise<void>;
  /** As a crash would: SIGKILL. */
  kill(): Promise<void>;
}

/** Where a server in `dir` has its Unix socket; undefined where that path would be too long for one. */
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

/** What the run store is designed for, wherever its Redis runs (docker-compose.yml says the same). */
export const redisArguments = [
  ...['--appendfsync', 'everysec'],
  // Snapshots fork at times of their own, and the append-only file already holds everything.
  ...['--save', ''],
  ...['--maxmemory-policy', 'noeviction'],
  // Delayed jobs are rounded up to 100 ms steps on an idle server at the default of 10.
  ...['--hz', '100'],
  ...['--client-output-buffer-limit', 'pubsub', '256mb', '64mb', '60'],
  // A run's record is a small hash; one field over 64 bytes would double its size.
  ...['--hash-max-listpack-value', '4096'],
] as const;

/** The same user's REDIS_URL at another address, such as that of a proxy. */
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

/** Of what a server says that cannot read what it has written: a full disk or a crash of the machine may leave that. */
const UNREADABLE = /reading the (?:append only file|RDB base file)|truncated file is not the last/;

/** @param lines its last words */
function whyNotStarted(how: string, lines: readonly string[], { path, libraries }: RedisBinary, dir: string): string {
  if (!lines.some((line) => UNREADABLE.test(line))) return `Redis did not start (${how}): ${lines.join(' | ')}`;
  const folder = join(resolve(dir), 'appendonlydir');
  const checker = basename(path).startsWith('valkey') ? 'valkey-check-aof' : 'redis-check-aof';
  const command = libraries === undefined ? checker : `LD_LIBRARY_PATH=${libraries} ${join(dirname(path), checker)}`;
  return (
    `Redis cannot read its file in ${folder}. Copy that folder, then cut off what is damaged, and all that was written after it, with: ` +
    `${command} --fix ${join(folder, 'appendonly.aof.manifest')}; or remove the folder to begin with nothing`
  );
}

/** Resolves when it accepts connections; rejects with the reason when it exits before. */
async function ready(child: ChildProcess, lines: string[], binary: RedisBinary, dir: string): Promise<void> {
  if (!child.stdout) throw new Error('a server without output');
  await new Promise<void>((accept, refuse) => {
    child.once('error', refuse);
    // When all that it said has been read.
    child.once('close', (code, signal) => {
      refuse(new Error(whyNotStarted(signal ?? `exit code ${code}`, lines, binary, dir)));
    });
    createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }).on('line', (line) => {
      lines.push(line);
      if (lines.length > KEPT_LINES) lines.shift();
      // Redis words this line differently for a socket and for a port.
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
    // Its own group: a Ctrl-C in the terminal must not end it before those who use it.
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
  // A server that runs keeps nobody's event loop alive: its owner stops it, or the guard does.
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
 * Starts a Redis of our own and resolves when it answers.
 *
 * @throws NoRedis where none can be had; Error with the server's last words where it does not start, or with what to do where it cannot read its file
 */
export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const binary = options.binary ?? (await obtainRedis(options.say ?? (() => {})));
  await mkdir(options.dir, { recursive: true });
  // The folder holds the socket and the data: other users of this machine may not enter.
  await chmod(options.dir, 0o700);
  if (options.passwords) await writeFile(usersFileOf(options), usersFile(options.passwords), { mode: 0o600 });
  for (let tried = 1; ; tried++) {
    try {
      return await attempt(binary, options);
    } catch (error) {
      // Between asking the kernel for a free port and using it, somebody else may have taken it.
      const taken = error instanceof Error && error.message.includes('Address already in use');
      if (!taken || options.port || tried === START_ATTEMPTS) throw error;
    }
  }
}
