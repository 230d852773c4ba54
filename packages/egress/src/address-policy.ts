// Contract 4, "Allowed addresses": decides which IP addresses a webhook may use. The gateway checks literals; the dispatcher checks every dial.
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A CIDR block. */
export type Network = readonly [address: Address, prefixLength: number];

const network = (cidr: string): Network => ipaddr.parseCIDR(cidr);

/** Special-purpose blocks of IPv4 (IANA's registry), each with the word that error messages use for the block. */
const FORBIDDEN_V4: readonly (readonly [Network, string])[] = [
  [network('0.0.0.0/8'), 'unspecified'],
  [network('10.0.0.0/8'), 'private'],
  [network('100.64.0.0/10'), 'shared'],
  [network('127.0.0.0/8'), 'loopback'],
  [network('169.254.0.0/16'), 'link-local'],
  [network('172.16.0.0/12'), 'private'],
  [network('192.0.0.0/24'), 'reserved'],
  [network('192.0.2.0/24'), 'documentation'],
  [network('192.88.99.0/24'), 'reserved'],
  [network('192.168.0.0/16'), 'private'],
  [network('198.18.0.0/15'), 'benchmarking'],
  [network('198.51.100.0/24'), 'documentation'],
  [network('203.0.113.0/24'), 'documentation'],
  [network('224.0.0.0/4'), 'multicast'],
  [network('240.0.0.0/4'), 'reserved'],
];

/** The only block of IPv6 that contains public addresses. The table below only adds a precise word for error messages. */
const GLOBAL_UNICAST = network('2000::/3');
const FORBIDDEN_V6: readonly (readonly [Network, string])[] = [
  [network('::/128'), 'unspecified'],
  [network('::1/128'), 'loopback'],
  [network('100::/64'), 'discard-only'],
  [network('2001::/32'), 'Teredo'],
  [network('2001::/23'), 'reserved'],
  [network('2001:db8::/32'), 'documentation'],
  [network('3fff::/20'), 'documentation'],
  [network('fc00::/7'), 'unique-local'],
  [network('fe80::/10'), 'link-local'],
  [network('fec0::/10'), 'site-local'],
  [network('ff00::/8'), 'multicast'],
];

/** Blocks of IPv6 that embed an IPv4 address, with the byte at which that address starts: mapped, NAT64 (well-known, local), 6to4. */
const EMBEDDING: readonly (readonly [Network, number])[] = [
  [network('::ffff:0:0/96'), 12],
  [network('64:ff9b::/96'), 12],
  // RFC 8215 leaves the layout of the /48 to the network. Only this /96 has a certain place for the IPv4 address.
  [network('64:ff9b:1::/96'), 12],
  [network('2002::/16'), 2],
];

/** RFC 4291 §2.5.5.1, deprecated form: ipaddr.js reads these addresses as mapped addresses, and the kernel does not. */
const COMPATIBLE = /^::\d+\.\d/;

const within = (address: Address, [base, bits]: Network): boolean =>
  address.kind() === base.kind() && address.match(base, bits);

const embedded = (address: Address): ipaddr.IPv4 | undefined => {
  for (const [block, at] of EMBEDDING) {
    if (within(address, block)) return new ipaddr.IPv4(address.toByteArray().slice(at, at + 4));
  }
  return undefined;
};

/**
 * Parses a comma list of CIDR blocks, such as `WEBHOOK_ALLOWED_NETWORKS`. An empty text is an empty list.
 * An IPv4 block also contains its mapped addresses.
 *
 * @throws Error if a part is not a CIDR block, or has bits set right of its prefix (a typing error that would allow too many addresses)
 */
export function parseNetworks(text: string): Network[] {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.length === 1 && parts[0] === '') return [];
  return parts.map((part) => {
    if (!ipaddr.isValidCIDR(part) || (!part.includes(':') && !ipaddr.IPv4.isValidCIDRFourPartDecimal(part))) {
      throw new Error(`"${part}" is not a CIDR block such as 10.1.0.0/16 or fd00::/8`);
    }
    const [address, bits] = network(part);
    const base =
      address.kind() === 'ipv4' ? ipaddr.IPv4.networkAddressFromCIDR(part) : ipaddr.IPv6.networkAddressFromCIDR(part);
    if (base.toNormalizedString() !== address.toNormalizedString()) {
      throw new Error(`"${part}" has bits set right of its prefix; write ${base.toString()}/${bits}`);
    }
    return [address, bits];
  });
}

/** Returns whether an address, or the IPv4 address that it embeds, is in one of the networks. @param text as `net.Socket` reports it */
export function inNetworks(networks: readonly Network[], text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  const inner = embedded(address);
  return networks.some((block) => within(address, block) || (inner !== undefined && within(inner, block)));
}

/** The last sentence of each message that rejects an address: only an operator can allow the address. */
export const ALLOW_HINT = 'An operator can allow its network with WEBHOOK_ALLOWED_NETWORKS.';

/** Allows public addresses and the addresses of the networks that an operator allowed. */
export class AddressPolicy {
  readonly #allowed: readonly Network[];

  constructor(allowed: readonly Network[] = []) {
    this.#allowed = allowed;
  }

  /**
   * Returns the reason for rejecting the address, as a word such as `loopback`. Returns nothing if the address may be dialled.
   *
   * @param text an IPv4 or IPv6 address without brackets, as a resolver returns it or `net.isIP` accepts it
   */
  refusal(text: string): string | undefined {
    if (!ipaddr.isValid(text)) return 'not an address';
    if (COMPATIBLE.test(text)) return 'reserved';
    const address = ipaddr.parse(text);
    if (inNetworks(this.#allowed, text)) return undefined;
    const inner = embedded(address);
    if (inner) return reason(inner, FORBIDDEN_V4);
    if (address.kind() === 'ipv4') return reason(address, FORBIDDEN_V4);
    return reason(address, FORBIDDEN_V6) ?? (within(address, GLOBAL_UNICAST) ? undefined : 'reserved');
  }
}

const reason = (address: Address, table: readonly (readonly [Network, string])[]): string | undefined =>
  table.find(([block]) => within(address, block))?.[1];
