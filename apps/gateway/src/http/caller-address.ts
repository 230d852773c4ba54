// Contract 7, "Endpoints": the address of a caller, for the audit log.
import type { IncomingMessage } from 'node:http';
import { inNetworks, type Network } from '@inference-proxy/egress';

/**
 * Returns the address of the caller. If a trusted proxy sent the request, returns the last address of `X-Forwarded-For`, which that proxy
 * has written.
 */
export function callerAddress({ socket, headers }: IncomingMessage, trustedProxies: readonly Network[]): string {
  const peer = socket.remoteAddress ?? '';
  if (peer === '' || !inNetworks(trustedProxies, peer)) return peer;
  return [headers['x-forwarded-for'] ?? []].flat().join(',').split(',').at(-1)?.trim() || peer;
}
