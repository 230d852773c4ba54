// Contract 9: the bytes that each project's runs take, and the share of the bound that each project may take.

/** The part of the bound that one of several projects may take. */
const SHARE = 0.5;
/** The part of a project's share that `accept` may fill. Results are written later and may be larger than their parameters. */
const ACCEPTED = 0.95;
/** New calls are refused from this part of the bound on (docs/decisions/0012-the-run-store-is-bounded.md). */
export const FULL = 0.85;
/** While this part of the bound is free, accepts do not count. The runs of one second are smaller. */
const PLENTY = 0.4;
/** Reserve of each run under way, for its outcome (parts/memory.lua). */
const RESERVED = 640;

export interface ProjectBytes {
  bytes: number;
  /** Number of runs that have not ended or whose delivery is open. Counted only near the project's share. */
  underWay: number;
}

/** Formats a share for parts/memory.lua. */
export const shareText = (share: number, evictable: boolean): string => `${share} ${evictable ? 1 : 0}`;

/** Stands for every project without runs. No project has an empty name. */
const NEW_PROJECT = '';

/** The sweeper measures. Until its first round, no call is refused on a guess. */
export class Shares {
  /** Whether `acceptLimit` is undefined for every project. A call reads only this field while the store is nearly empty. */
  hasPlenty = true;
  #projects: ReadonlyMap<string, ProjectBytes> = new Map();
  #total = 0;
  #limit = Number.POSITIVE_INFINITY;
  #held = { minimum: 0, total: 0, bytes: 0 };

  /** Bytes of all projects' runs, and the bound (infinite until it is known). */
  get usage(): { readonly bytes: number; readonly boundBytes: number } {
    return { bytes: this.#total, boundBytes: this.#limit };
  }

  /** Sets the bound, bytes. */
  bound(bytes: number): void {
    this.#limit = bytes;
    this.#compare();
  }

  /** Adds up the projects again. The map stays in use, and its changes count from the next call on. */
  count(projects: ReadonlyMap<string, ProjectBytes>): void {
    this.#projects = projects;
    this.#total = 0;
    for (const { bytes } of projects.values()) this.#total += bytes;
    this.#compare();
  }

  /**
   * Returns a project's share of the bound (Contract 9) without the reserve of its runs under way, in bytes; undefined while the bound is
   * unknown. The share is at most half of the bound, and at most what other projects leave. Half of the bound, divided by the number of
   * projects, belongs to each project.
   */
  shareOf(project: string): number | undefined {
    if (!Number.isFinite(this.#limit)) return undefined;
    const reserved = RESERVED * (this.#projects.get(project)?.underWay ?? 0);
    return Math.max(0, this.#shareAt(project, 1, SHARE) - reserved);
  }

  /** Returns the bytes up to which a project's runs are accepted; undefined if there is so much room that `accept` need not count. */
  acceptLimit(project: string): number | undefined {
    if (!Number.isFinite(this.#limit)) return undefined;
    const own = this.#projects.get(project)?.bytes ?? 0;
    const room = this.#shareAt(project, FULL, SHARE * ACCEPTED);
    return room - own > this.#limit * PLENTY ? undefined : room;
  }

  #compare(): void {
    this.hasPlenty = [NEW_PROJECT, ...this.#projects.keys()].every((name) => this.acceptLimit(name) === undefined);
  }

  /**
   * @param full part of the bound that all projects together may take
   * @param most part that one of several projects may take
   */
  #shareAt(project: string, full: number, most: number): number {
    const projects = this.#projects;
    const limit = this.#limit;
    const count = projects.size + (projects.has(project) ? 0 : 1);
    if (count === 1) return Math.floor(limit * full);
    const minimum = (limit * SHARE) / count;
    const own = projects.get(project);
    const others = this.#heldWith(minimum) - (own ? Math.max(own.bytes, minimum) : 0);
    return Math.floor(Math.max(minimum, Math.min(limit * full - others, limit * most)));
  }

  /** Returns the bytes of all projects, each at least `minimum`. Every call needs the sum, so each total is added up only once. */
  #heldWith(minimum: number): number {
    const held = this.#held;
    const total = this.#total;
    if (held.minimum === minimum && held.total === total) return held.bytes;
    let sum = 0;
    for (const { bytes } of this.#projects.values()) sum += Math.max(bytes, minimum);
    this.#held = { minimum, total, bytes: sum };
    return sum;
  }
}
