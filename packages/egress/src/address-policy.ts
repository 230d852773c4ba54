// webhooks.md "Address policy": which addresses a webhook may go to. The gateway asks it for literals, the dispatcher for what it dials.
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A CIDR block. */
export type Network = readonly [address: Address, prefixLength: number];

const network = (cidr: string): Network => ipaddr.parseCIDR(cidr);

/** Blocks of IPv4 that are not public (IANA's special-purpose registry), and what they are to the reader of an error. */
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

/** The only block of IPv6 from which public addresses are given out. What lies outside is named where a name helps. */
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

/** Blocks of IPv6 that carry an IPv4 address, and the byte where it starts: mapped, NAT64 (well-known, local), 6to4. */
const EMBEDDING: readonly (readonly [Network, number])[] = [
  [network('::ffff:0:0/96'), 12],
  [network('64:ff9b::/96'), 12],
  // RFC 8215 leaves the layout of the /48 to the network; only the one whose address is certain is read.
  [network('64:ff9b:1::/96'), 12],
  [network('2002::/16'), 2],
];

/** RFC 4291 §2.5.5.1, deprecated: ipaddr.js reads these as mapped addresses, the kernel does not. */
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
 * A comma list of CIDR blocks, as in `WEBHOOK_ALLOWED_NETWORKS`; empty is none. An IPv4 block holds its mapped addresses too.
 *
 * @throws Error that names what is no block, or has bits set right of its prefix (a typing error that would open more than was meant)
 */
export function parseNetworks(text: string): Network[] {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.length === 1 && parts[0] === '') return [];
  return parts.map((part) => {
    if (!ipaddr.isValidCIDR(part) || (!part.includes(':') && !ipaddr.IPv4.isValidCIDRFourPartDecimal(part))) {
      throw new Error(`"${part}" is no CIDR block such as 10.1.0.0/16 or fd00::/8`);
    }
    const [address, bits] = network(part);
    const base =
      address.kind() === 'ipv4' ? ipaddr.IPv4.networkAddressFromCIDR(part) : ipaddr.IPv6.networkAddressFromCIDR(part);
    if (base.toNormalizedString() !== address.toNormalizedString()) {
      throw new Error(`"${part}" has bits set right of its prefix: ${base.toString()}/${bits} is the block`);
    }
    return [address, bits];
  });
}

/** Whether an address is in one of these networks; a mapped one by what it maps. @param text as `net.Socket` gives it */
export function inNetworks(networks: readonly Network[], text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  const inner = embedded(address);
  return networks.some((block) => within(address, block) || (inner !== undefined && within(inner, block)));
}

/** Ends each message that refuses an address: only an operator can allow it. */
export const ALLOW_HINT = 'An operator can allow its network with WEBHOOK_ALLOWED_NETWORKS.';

/** Public addresses, and those of the networks an operator opened. */
export class AddressPolicy {
  readonly #allowed: readonly Network[];

  constructor(allowed: readonly Network[] = []) {
    this.#allowed = allowed;
  }

  /**
   * Why this address is refused, in a word such as `loopback`; nothing when it may be dialled.
   *
   * @param text an IPv4 or IPv6 address as a resolver or `net.isIP` knows it, without brackets
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
