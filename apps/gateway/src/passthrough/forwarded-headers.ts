// Contract 1, "Custom runtimes", and RFC 9110 §7.6.1: selects the headers of a call that reach the app's server.
import type { IncomingMessage } from 'node:http';
import type { HeaderPair } from '@inference-proxy/contracts';
import { inNetworks, type Network } from '@inference-proxy/egress';
import { preferencesOfOthers } from '../calls/preferences.ts';

/** Headers of the caller's connection, and of the connection that the worker makes to the server. */
const OF_CONNECTIONS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** Headers between the caller and the gateway, and headers that the gateway writes anew. */
const GATEWAY_HEADERS: ReadonlySet<string> = new Set([
  'forwarded',
  'traceparent',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'x-request-id',
  'x-webhook-secret',
]);
const MAPPED_V4 = /^::ffff:(?=\d+\.)/i;

/** The parts of a caller's request from which the headers are read. */
export interface CallerRequest extends Pick<IncomingMessage, 'rawHeaders' | 'headers'> {
  readonly socket: Pick<IncomingMessage['socket'], 'remoteAddress'>;
}

export interface ForwardingRules {
  /** Proxies whose `X-Forwarded-*` headers are believed (`TRUSTED_PROXIES`). */
  readonly trustedProxies: readonly Network[];
  /** The server receives the caller's token (`forward_auth`). */
  readonly forwardAuth: boolean;
  /** The path above the server's root. */
  readonly prefix: string;
}

/** Returns the headers for the server in the caller's order, with `X-Forwarded-*` last. */
export function forwardedHeaders(request: CallerRequest, rules: ForwardingRules): HeaderPair[] {
  const { rawHeaders, headers } = request;
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const kept: HeaderPair[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    const lower = name.toLowerCase();
    if (OF_CONNECTIONS.has(lower) || GATEWAY_HEADERS.has(lower) || named.has(lower)) continue;
    if (lower === 'authorization' && !rules.forwardAuth) continue;
    const rest = lower === 'prefer' ? preferencesOfOthers(value) : value;
    if (lower !== 'prefer' || rest !== '') kept.push([name, rest]);
  }
  return [...kept, ...whereFrom(request, rules)];
}

/** Returns `X-Forwarded-*`. An untrusted peer could claim any value, so its headers are ignored. */
function whereFrom({ headers, socket }: CallerRequest, { trustedProxies, prefix }: ForwardingRules): HeaderPair[] {
  const peer = (socket.remoteAddress ?? '').replace(MAPPED_V4, '');
  const trusted = inNetworks(trustedProxies, peer);
  const fromProxy = (name: string): string | undefined => {
    const value = trusted ? headers[name] : undefined;
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const before = fromProxy('x-forwarded-for');
  const host = fromProxy('x-forwarded-host') ?? headers.host;
  return [
    ['X-Forwarded-For', before === undefined ? peer : `${before}, ${peer}`],
    ['X-Forwarded-Proto', fromProxy('x-forwarded-proto') ?? 'http'],
    ...(host === undefined ? [] : [['X-Forwarded-Host', host] as const]),
    ['X-Forwarded-Prefix', `${fromProxy('x-forwarded-prefix') ?? ''}${prefix}`],
  ];
}
