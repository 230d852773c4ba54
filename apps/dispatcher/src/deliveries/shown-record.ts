// Contract 5: the part of an attempt's record that the delivery log shows to the project.
import { isIP } from 'node:net';
import { AddressPolicy } from '@inference-proxy/egress';
import type { AttemptRecord } from './records.ts';

const publicOnly = new AddressPolicy();

/**
 * Returns the record without an address that is not public, unless the URL itself has the address.
 *
 * A project could otherwise look up the addresses of this network by name. The dispatcher's own log keeps them.
 */
export function shownRecord(made: AttemptRecord, url: string): AttemptRecord {
  const { address, ...rest } = made;
  if (address === undefined || publicOnly.refusal(address) === undefined) return made;
  return isIP(bareHost(url)) === 0 ? rest : made;
}

/** Returns the host of a URL, without the brackets of an IPv6 address. */
const bareHost = (url: string): string => (URL.parse(url)?.hostname ?? '').replace(/^\[|\]$/g, '');
