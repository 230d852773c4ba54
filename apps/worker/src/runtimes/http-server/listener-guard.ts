// Contract 1, "Custom runtimes": calls of an app reach a process of this app, and no other process that listens on the port.
import { type HeldSocket, heldBelow, isHeld, type Loopback, listeningSockets } from './socket-owner.ts';

/**
 * The interval between reads of the table of all sockets while the known sockets are held. A read took 15 ms with 262,144 hash buckets.
 * A process can join the port of a server that sets SO_REUSEPORT. The guard notices that after this time.
 */
const TABLE_EVERY_MS = 60_000;

/** Checks that processes below one keeper own the listening sockets of a server. */
export class ListenerGuard {
  readonly #host: Loopback;
  readonly #port: number;
  readonly #keeper: number;
  #held: readonly HeldSocket[] = [];
  #checkedAt = 0;

  /** @param keeper process id of the keeper that started the server */
  constructor(host: Loopback, port: number, keeper: number) {
    this.#host = host;
    this.#port = port;
    this.#keeper = keeper;
  }

  /**
   * Returns a text that names the sockets, and is equal as long as the same sockets listen. Connect between two calls that return the same text:
   * then the connection reached the app. On a system without /proc the owner is unknown, and the text is always the same.
   *
   * @throws Error with a text for the app's author: nothing listens on the port, or a process of another app does
   */
  sockets(): string {
    const isRecent = performance.now() - this.#checkedAt < TABLE_EVERY_MS;
    if (this.#held.length === 0 || !isRecent || !this.#held.every(isHeld)) this.#check();
    return this.#held.map(({ target }) => target).join(' ');
  }

  #check(): void {
    const inodes = listeningSockets(this.#host, this.#port);
    this.#held = [];
    if (inodes === undefined) return;
    if (inodes.length === 0) throw Object.assign(new Error('the server does not listen'), { code: 'ECONNREFUSED' });
    const held = heldBelow(this.#keeper, inodes);
    if (held === undefined) throw new Error(`port ${this.#port} of this machine belongs to another process`);
    this.#held = held.toSorted((one, other) => (one.target < other.target ? -1 : 1));
    this.#checkedAt = performance.now();
  }
}
