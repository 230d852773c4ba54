// webhooks.md "Address policy": names become addresses without the thread pool. `getaddrinfo` runs on two of its four threads, so a
// few names whose servers never answer would hold up every other receiver; c-ares asks over sockets of its own.
import { Resolver } from 'node:dns/promises';
import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';

/** All addresses of a name, at least one. @throws an error with a DNS code (`ENOTFOUND`, `ETIMEOUT`, …) where there are none */
export type NameLookup = (hostname: string) => Promise<readonly string[]>;

/** RFC 6761 §6.3: never asked of a server. */
const LOCALHOST = ['127.0.0.1', '::1'];
/** One second, then two: half of it is left of a connection's five seconds. */
const PATIENCE = { timeout: 1000, tries: 2 };

export interface NameLookupOptions {
  /** `address:port` of name servers, in place of the system's. */
  readonly servers?: readonly string[];
  readonly hostsFile?: string;
  /** Of one server: milliseconds until it is asked again, doubled each time, and how often it is asked. */
  readonly patience?: { readonly timeout: number; readonly tries: number };
}

/**
 * Looks names up in the hosts file, then asks the system's DNS servers (or `servers`) for A and AAAA. Names are taken as absolute:
 * search domains are not tried, so a webhook's host means the same on every machine.
 */
export function nameLookup(options: NameLookupOptions = {}): NameLookup {
  const resolver = new Resolver(options.patience ?? PATIENCE);
  if (options.servers) resolver.setServers(options.servers);
  const hosts = new HostsFile(options.hostsFile ?? '/etc/hosts');
  return async (hostname) => {
    const name = hostname.replace(/\.$/, '').toLowerCase();
    if (name === 'localhost' || name.endsWith('.localhost')) return LOCALHOST;
    const known = await hosts.addresses(name);
    if (known.length > 0) return known;
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    // ENODATA of one family says less than the other's failure.
    const failures = answers.flatMap((answer): unknown[] => (answer.status === 'rejected' ? [answer.reason] : []));
    throw (
      failures.find((failure) => errorCode(failure) !== 'ENODATA') ?? failures[0] ?? new Error(`${name} has no address`)
    );
  };
}

/** The code of a DNS or socket failure (`ENOTFOUND`, `ECONNREFUSED`), where it has one. */
export const errorCode = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;

/** The hosts file (hosts(5)), read again when it changed: containers are given names in it (`extra_hosts`). */
class HostsFile {
  readonly #path: string;
  #readAt = -1;
  #names: ReadonlyMap<string, readonly string[]> = new Map();

  constructor(path: string) {
    this.#path = path;
  }

  async addresses(name: string): Promise<readonly string[]> {
    try {
      const { mtimeMs } = await stat(this.#path);
      if (mtimeMs !== this.#readAt) {
        this.#names = parseHosts(await readFile(this.#path, 'utf8'));
        this.#readAt = mtimeMs;
      }
    } catch {
      this.#names = new Map();
      this.#readAt = -1;
    }
    return this.#names.get(name) ?? [];
  }
}

function parseHosts(text: string): Map<string, string[]> {
  const names = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...aliases] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const alias of aliases) {
      const name = alias.toLowerCase();
      names.set(name, [...(names.get(name) ?? []), address]);
    }
  }
  return names;
}
