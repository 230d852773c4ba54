// Contract 1, "Custom runtimes": finds the process that listens on a port of this machine, in /proc/net/tcp and /proc/<pid>/fd (proc(5)).
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { endianness } from 'node:os';

/** `TCP_LISTEN` of include/net/tcp_states.h. The kernel lists the listening sockets of a table first. */
const LISTENING = '0A';
const CHUNK_BYTES = 64 * 1024;

export type Loopback = '127.0.0.1' | '::1';

/** An address as /proc/net/tcp prints it: words of 32 bits in the machine's own byte order. */
function printed(...words: readonly number[]): string {
  const bytes = Buffer.alloc(words.length * 4);
  words.forEach((word, at) => {
    if (endianness() === 'LE') bytes.writeUInt32BE(swapped(word), at * 4);
    else bytes.writeUInt32BE(word, at * 4);
  });
  return bytes.toString('hex').toUpperCase();
}

function swapped(word: number): number {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(word);
  return bytes.readUInt32BE();
}

const MAPPED = [0, 0, 0xffff] as const;
const V4_LOOPBACK = 0x7f000001;

/**
 * Addresses of sockets that take connections to a loopback address, in the order of the kernel (inet_lookup_listener): the exact address,
 * then any address of the family, then any IPv6 address. The first group with a socket takes all connections.
 */
const GROUPS: Readonly<Record<Loopback, readonly (readonly string[])[]>> = {
  '127.0.0.1': [
    [printed(V4_LOOPBACK), printed(...MAPPED, V4_LOOPBACK)],
    [printed(0), printed(...MAPPED, 0)],
    [printed(0, 0, 0, 0)],
  ],
  '::1': [[printed(0, 0, 0, 1)], [printed(0, 0, 0, 0)]],
};

/**
 * Returns the inodes of the sockets that take connections to `host` and `port`, sorted. Several sockets share a port by SO_REUSEPORT.
 * Returns undefined if this system has no /proc/net/tcp, or hides it from the worker.
 *
 * @throws Error if the table cannot be read now
 */
export function listeningSockets(host: Loopback, port: number): readonly string[] | undefined {
  const v4 = listening('/proc/net/tcp');
  if (v4 === undefined) return undefined;
  const sockets = [...v4, ...(listening('/proc/net/tcp6') ?? [])];
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  for (const group of GROUPS[host]) {
    const places = new Set(group.map((address) => address + suffix));
    const inodes = sockets.filter(({ place }) => places.has(place)).map(({ inode }) => inode);
    if (inodes.length > 0) return inodes.sort();
  }
  return [];
}

/** A socket by the descriptor of a process that holds it. */
export interface HeldSocket {
  /** `/proc/<pid>/fd/<number>` */
  readonly path: string;
  readonly target: string;
}

/** Returns whether the process still holds the socket. An inode is not used again while its socket lives. */
export const isHeld = ({ path, target }: HeldSocket): boolean => unless(() => readlinkSync(path)) === target;

/**
 * Returns the descriptors by which processes below `keeper` hold these sockets, or undefined unless the processes hold all of them.
 * A process whose descriptors cannot be read holds none.
 */
export function heldBelow(keeper: number, inodes: readonly string[]): readonly HeldSocket[] | undefined {
  const missing = new Set(inodes.map((inode) => `socket:[${inode}]`));
  const found: HeldSocket[] = [];
  for (const pid of descendants(keeper)) {
    for (const socket of descriptors(pid)) if (missing.delete(socket.target)) found.push(socket);
    if (missing.size === 0) return found;
  }
  return undefined;
}

/** Returns the listening sockets of a table: address with port, and inode. Undefined if the system has no such table, or hides it. */
function listening(table: string): { place: string; inode: string }[] | undefined {
  let file: number;
  try {
    file = openSync(table, 'r');
  } catch (error) {
    // A worker without free file descriptors must not treat every process as the app's own.
    if (!['ENOENT', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    return undefined;
  }
  const found: { place: string; inode: string }[] = [];
  for (const line of linesOf(file)) {
    const [slot = '', place = '', , state = '', , , , , , inode = ''] = line.trim().split(/\s+/);
    if (!slot.endsWith(':')) continue; // the header line
    if (state !== LISTENING) break;
    found.push({ place, inode });
  }
  return found;
}

/** Yields the lines of a file. Reads only as far as the caller needs, because a table has a line for every connection of the machine. */
function* linesOf(file: number): Generator<string> {
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    let rest = '';
    for (let bytes = readSync(file, buffer); bytes > 0; bytes = readSync(file, buffer)) {
      const lines = (rest + buffer.toString('latin1', 0, bytes)).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    closeSync(file);
  }
}

/** Returns whether one of these sockets belongs to a process that runs in `folder`, or to a descendant of such a process. */
export function isHeldFrom(folder: string, inodes: readonly string[]): boolean {
  const targets = new Set(inodes.map((inode) => `socket:[${inode}]`));
  const parents = parentOfEach();
  for (const holder of parents.keys()) {
    const sockets = [...descriptors(holder)].map(({ target }) => target);
    if (!sockets.some((target) => targets.has(target))) continue;
    for (let pid: number | undefined = holder; pid !== undefined; pid = parents.get(pid))
      if (unless(() => readlinkSync(`/proc/${pid}/cwd`)) === folder) return true;
  }
  return false;
}

/** Returns the process ids of the children of `root`, and of all their descendants. A keeper adopts each process whose parent has ended. */
function descendants(root: number): number[] {
  const children = Map.groupBy(parentOfEach(), ([, parent]) => parent);
  const found: number[] = [];
  const search = [root];
  for (let pid = search.pop(); pid !== undefined; pid = search.pop()) {
    const below = (children.get(pid) ?? []).map(([child]) => child);
    found.push(...below);
    search.push(...below);
  }
  return found;
}

/** Returns the parent of every process of the machine. */
function parentOfEach(): Map<number, number> {
  const parents = new Map<number, number>();
  for (const name of unless(() => readdirSync('/proc')) ?? []) {
    const stat = /^\d+$/.test(name) ? unless(() => readFileSync(`/proc/${name}/stat`, 'latin1')) : undefined;
    if (stat === undefined) continue;
    // After the name in brackets, which may contain anything: state, ppid.
    const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    parents.set(Number(name), Number(parent));
  }
  return parents;
}

function* descriptors(pid: number): Generator<HeldSocket> {
  for (const name of unless(() => readdirSync(`/proc/${pid}/fd`)) ?? []) {
    const path = `/proc/${pid}/fd/${name}`;
    const target = unless(() => readlinkSync(path));
    if (target !== undefined) yield { path, target };
  }
}

/** Returns the result of `read`, or undefined if it throws: a process may end during the read. */
function unless<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
