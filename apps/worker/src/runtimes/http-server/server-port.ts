// docs/apps/web-servers.md, "Ports": the port on which each start of a server listens, and the command line that names it.
import { replacePort } from './literal-port.ts';
import { isTaken, type Ports } from './ports.ts';

/** A port for one start, held until `release`. */
export interface TakenPort {
  readonly port: number;
  readonly entrypoint: readonly string[];
  /** Set if a fixed port is taken and was replaced: a text for the app's log. */
  readonly replaced?: string;
  /** Call it when the process has ended, or did not start. */
  release(): void;
}

/** The ports of one version of an app. */
export class ServerPort {
  readonly #ports: Ports;
  readonly #app: string;
  readonly #fixed: number | undefined;
  readonly #entrypoint: readonly string[];
  #reserved = false;
  /** Releases of the ports that are held for a start. */
  readonly #releases = new Set<() => void>();
  /** Settle when this version's processes that listen on the fixed port have ended. */
  readonly #listening = new Set<Promise<void>>();

  /**
   * Reserves a fixed port at once, so that all apps that a worker finds have their ports before the first app starts.
   *
   * @param fixed the manifest's port, if it names one
   */
  constructor(ports: Ports, app: string, fixed: number | undefined, entrypoint: readonly string[]) {
    this.#ports = ports;
    this.#app = app;
    this.#fixed = fixed;
    this.#entrypoint = entrypoint;
    this.#reserve();
  }

  /** @throws Error with a text for the app's author: the fixed port is taken and cannot be replaced */
  async take(): Promise<TakenPort> {
    const fixed = this.#fixed;
    if (fixed === undefined) return this.#takeFree(this.#entrypoint);
    if (this.#reserve() && !(await isTaken(fixed))) return this.#takeFixed(fixed);
    const free = await this.#ports.reserveFree(this.#app);
    const entrypoint = replacePort(this.#entrypoint, fixed, free);
    if (entrypoint) {
      const replaced = `port ${fixed} is taken on this machine: the server starts on port ${free}, which replaces ${fixed} in entrypoint`;
      return { port: free, entrypoint, replaced, release: this.#once(() => this.#ports.release(free)) };
    }
    this.#ports.release(free);
    if (this.#listening.size > 0) {
      await Promise.all(this.#listening); // a process that is being replaced ends its open runs first
      return this.take();
    }
    throw new Error(
      `port ${fixed} is taken by another server on this machine: write {port} in entrypoint instead of the number, or remove port and let the server read PORT`,
    );
  }

  /** Call it when the version has ended, or will never start. */
  close(): void {
    for (const release of this.#releases) release();
    if (this.#reserved && this.#fixed !== undefined) this.#ports.release(this.#fixed);
    this.#reserved = false;
  }

  #reserve(): boolean {
    if (this.#fixed !== undefined) this.#reserved ||= this.#ports.reserve(this.#fixed, this.#app);
    return this.#reserved;
  }

  async #takeFree(entrypoint: readonly string[]): Promise<TakenPort> {
    const port = await this.#ports.reserveFree(this.#app);
    return { port, entrypoint, release: this.#once(() => this.#ports.release(port)) };
  }

  #takeFixed(port: number): TakenPort {
    const ended = Promise.withResolvers<void>();
    this.#listening.add(ended.promise);
    const release = this.#once(() => {
      this.#listening.delete(ended.promise);
      ended.resolve();
    });
    return { port, entrypoint: this.#entrypoint, release };
  }

  /** Returns a function that calls `release` once. */
  #once(release: () => void): () => void {
    const once = (): void => {
      if (this.#releases.delete(once)) release();
    };
    this.#releases.add(once);
    return once;
  }
}
