// Contract 6, "Tokens": the list of revoked tokens. Redis keeps the list, and each gateway has a copy that is at most seconds old.
import { ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { revocationChangesKey, revokedKey } from '../keys.ts';
import type { Task } from '../maintenance/rounds.ts';
import { withinLimit } from '../redis.ts';
import type { StoreLogger, StoreTimings } from '../timings.ts';

/** Time between two rounds. Redis may take `commandMs` (2 s) to answer. Together they stay under the 5 s of the contract. */
const EVERY_MS = 1000;
/** Maximum number of entries, because every gateway copies the whole list. */
const MOST = 10_000;

/** One token by its `jti`, or all tokens of a subject that were issued until `issuedUntil` (Unix seconds). */
export type Revoked = { readonly jti: string } | { readonly sub: string; readonly issuedUntil: number };

/** The parts of a token that decide whether it is revoked. */
export interface TokenIdentity {
  readonly jti?: string;
  readonly sub?: string;
  /** Unix seconds. */
  readonly issuedAt?: number;
}

/** The copy of the list. A project is `*` in an entry for all projects. */
interface RevocationList {
  /** By `<project> <jti>`: expiry of the entry, Unix ms. */
  readonly tokens: ReadonlyMap<string, number>;
  /** By `<project> <sub>`. */
  readonly subjects: ReadonlyMap<string, { readonly until: number; readonly issuedUntil: number }>;
}

const EMPTY: RevocationList = { tokens: new Map(), subjects: new Map() };

export class Revocations implements Task {
  readonly everyMs = EVERY_MS;
  /** No token may be admitted before the first read. */
  readonly atOnce = true;
  readonly #redis: Redis;
  readonly #logger: StoreLogger;
  readonly #limitMs: number;
  #entries = EMPTY;
  /** The counter of changes at the time of the copy; undefined before the first read. */
  #changes: string | undefined;
  #reading: Promise<void> | undefined;

  constructor(redis: Redis, logger: StoreLogger, { commandMs }: Pick<StoreTimings, 'commandMs'>) {
    this.#redis = redis;
    this.#logger = logger;
    this.#limitMs = commandMs;
  }

  /** Whether the list was read once. Before that, no token may be admitted. */
  get known(): boolean {
    return this.#changes !== undefined;
  }

  /** Reads the list if no read has succeeded yet. @throws ServiceError `unavailable` */
  async ready(): Promise<void> {
    if (!this.known) await this.#read();
  }

  /** Returns whether a token is revoked for requests to this project. Call it only if `known` is true. */
  covers(project: string, token: TokenIdentity): boolean {
    const { tokens, subjects } = this.#entries;
    // The usual case: nothing is revoked.
    if (tokens.size === 0 && subjects.size === 0) return false;
    return [project, '*'].some((scope) => this.#listed(scope, token));
  }

  /**
   * Adds an entry to the list, and to this gateway's copy before the promise resolves.
   *
   * @param project `*`: the token is refused for all projects
   * @param until expiry of the token, Unix ms. The entry expires with the token.
   * @throws ServiceError `overloaded` if the list is full; `unavailable`
   */
  async revoke(project: string, revoked: Revoked, until: number): Promise<void> {
    const redis = this.#redis;
    const limit = this.#limitMs;
    await withinLimit(redis.zremrangebyscore(revokedKey, '-inf', Date.now()), limit);
    if ((await withinLimit(redis.zcard(revokedKey), limit)) >= MOST)
      throw new ServiceError('overloaded', `The list of revoked tokens is full: ${MOST} entries.`, { retryAfterS: 60 });
    const change = redis.multi().zadd(revokedKey, 'GT', until, memberOf(project, revoked)).incr(revocationChangesKey);
    await withinLimit(change.exec(), limit);
    await this.#read();
  }

  async run(): Promise<void> {
    try {
      await this.#read();
    } catch (error) {
      this.#logger.warn({ err: error }, 'the list of revoked tokens could not be read; the last copy stays in use');
    }
  }

  /** Reads the list, one read at a time. A call during a read gets a read that began after the call. */
  async #read(): Promise<void> {
    const before = this.#reading;
    const read = (async () => {
      await before?.catch(() => {});
      await this.#copy();
    })();
    this.#reading = read;
    await read;
  }

  async #copy(): Promise<void> {
    const limit = this.#limitMs;
    // The counter is read first. A change between the two reads causes another read in the next round.
    const changes = (await withinLimit(this.#redis.get(revocationChangesKey), limit)) ?? '';
    if (changes === this.#changes) return;
    const members = await withinLimit(this.#redis.zrange(revokedKey, '0', '-1', 'WITHSCORES'), limit);
    this.#entries = entriesOf(members);
    this.#changes = changes;
  }

  #listed(project: string, { jti, sub, issuedAt }: TokenIdentity): boolean {
    const now = Date.now();
    if (jti !== undefined && (this.#entries.tokens.get(keyOf(project, jti)) ?? 0) > now) return true;
    const subject = sub === undefined ? undefined : this.#entries.subjects.get(keyOf(project, sub));
    // A token without `iat` may be older than the revocation.
    return subject !== undefined && subject.until > now && (issuedAt ?? 0) <= subject.issuedUntil;
  }
}

const keyOf = (project: string, name: string): string => JSON.stringify([project, name]);

/** Returns a member of the set, as JSON, because names may hold any character. */
const memberOf = (project: string, revoked: Revoked): string =>
  JSON.stringify('jti' in revoked ? [project, revoked.jti] : [project, revoked.sub, revoked.issuedUntil]);

function entriesOf(members: readonly string[]): RevocationList {
  const tokens = new Map<string, number>();
  const subjects = new Map<string, { until: number; issuedUntil: number }>();
  for (let at = 0; at < members.length; at += 2) {
    const [project, name, issuedUntil] = JSON.parse(members[at] as string) as [string, string, number?];
    const until = Number(members[at + 1]);
    const key = keyOf(project, name);
    if (issuedUntil === undefined) tokens.set(key, until);
    else if (issuedUntil >= (subjects.get(key)?.issuedUntil ?? 0)) subjects.set(key, { until, issuedUntil });
  }
  return { tokens, subjects };
}
