// Contract 4, "Allowed addresses": resolves names without the thread pool. `getaddrinfo` may use only two of the pool's four threads. A few
// names whose servers never answer would therefore delay every other receiver. c-ares uses sockets instead.
import { Resolver } from 'node:dns/promises';
import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';

/** Returns all addresses of a name, at least one. @throws an error with a DNS code (`ENOTFOUND`, `ETIMEOUT`, …) if the name has no address */
export type NameLookup = (hostname: string) => Promise<readonly string[]>;

/** RFC 6761 §6.3: a name server must not be asked for this name. */
const LOCALHOST = ['127.0.0.1', '::1'];
/** One second, then two. About half of a connection's five seconds remains for TCP and TLS. */
const PATIENCE = { timeout: 1000, tries: 2 };

export interface NameLookupOptions {
  /** `address:port` of name servers to use instead of the system's servers. */
  readonly servers?: readonly string[];
  readonly hostsFile?: string;
  /** For one server: milliseconds until the next try, doubled each time, and the number of tries. */
  readonly patience?: { readonly timeout: number; readonly tries: number };
}

/**
 * Looks names up in the hosts file, then asks the system's DNS servers (or `servers`) for A and AAAA records. Names are absolute: search
 * domains are not tried, so a webhook's host means the same on every machine.
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
    // The failure of the other address family is more precise than ENODATA.
    const failures = answers.flatMap((answer): unknown[] => (answer.status === 'rejected' ? [answer.reason] : []));
    throw (
      failures.find((failure) => errorCode(failure) !== 'ENODATA') ?? failures[0] ?? new Error(`${name} has no address`)
    );
  };
}

/** Returns the code of a DNS or socket error (`ENOTFOUND`, `ECONNREFUSED`), if the error has a code. */
export const errorCode = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;

/** The hosts file (hosts(5)). It is read again after a change, because containers get names in it (`extra_hosts`). */
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
