// Contract 4, "Allowed addresses": dials only checked addresses. The socket uses the addresses of the check, so DNS rebinding has no effect.
import { isIP, type LookupFunction, connect as netConnect, type Socket } from 'node:net';
import { type SecureContext, connect as tlsConnect } from 'node:tls';
import { type AddressPolicy, ALLOW_HINT } from './address-policy.ts';
import { ConnectError } from './connect-error.ts';
import { errorCode, type NameLookup } from './name-lookup.ts';

/** Happy eyeballs (RFC 8305): five addresses fit into a connection's five seconds. With Node's 250 ms, distant receivers fail. */
const NEXT_ADDRESS_AFTER_MS = 1000;

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
  'EMFILE',
]);

/** The server to dial: the scheme, host (without brackets) and port of a URL. */
export interface Target {
  readonly secure: boolean;
  readonly hostname: string;
  readonly port: number;
}

/** The policy, resolver, time limit and TLS context of a connection. */
export interface DialOptions {
  readonly policy: AddressPolicy;
  readonly lookup: NameLookup;
  /** Milliseconds for name lookup, TCP and TLS together. */
  readonly timeoutMs: number;
  /** The trusted root certificates. All connections share one context, because building a context costs more than a handshake. */
  readonly secureContext: SecureContext;
}

/**
 * Dials a target and calls `done` once. `done` receives a connected (for https: verified) socket, or the ConnectError of the failed stage.
 *
 * @returns a function that aborts the dial; it has no effect after `done` was called
 */
export function dial(
  target: Target,
  options: DialOptions,
  done: (error: ConnectError | null, socket: Socket | null) => void,
): () => void {
  const { policy } = options;
  const literal = isIP(target.hostname) !== 0;
  const why = literal ? policy.refusal(target.hostname) : undefined;
  if (why) {
    done(blocked(`${target.hostname} is ${why}`, target.hostname), null);
    return () => {};
  }

  let stage: 'dns' | 'tcp' | 'tls' = literal ? 'tcp' : 'dns';
  let tried: string | undefined = literal ? target.hostname : undefined;
  const lookup: LookupFunction = (hostname, { all }, answer) => {
    options.lookup(hostname).then(
      (addresses) => {
        for (const address of addresses) {
          const refusal = policy.refusal(address);
          // The message reaches the owner of the webhook, who must not learn the addresses of this network.
          if (refusal) return answer(blocked(`${hostname} has an address that is ${refusal}`, address), '');
        }
        const [first = ''] = addresses;
        stage = 'tcp';
        tried = first;
        if (all)
          answer(
            null,
            addresses.map((address) => ({ address, family: isIP(address) })),
          );
        else answer(null, first, isIP(first));
      },
      (error: unknown) =>
        answer(
          new ConnectError('dns', `${hostname} does not resolve: ${errorCode(error) ?? 'error'}`, { cause: error }),
          '',
        ),
    );
  };
  const route = {
    host: target.hostname,
    port: target.port,
    lookup,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
  };
  const socket = target.secure
    ? tlsConnect({
        ...route,
        ...(!literal && { servername: target.hostname.replace(/\.$/, '') }),
        ALPNProtocols: ['http/1.1'],
        secureContext: options.secureContext,
        rejectUnauthorized: true,
      })
    : netConnect(route);

  let settled = false;
  const settle = (error: ConnectError | null, connected: Socket | null): void => {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    done(error, connected);
  };
  const timer = setTimeout(() => {
    const during = { dns: 'name lookup', tcp: 'TCP connect', tls: 'TLS handshake' }[stage];
    const message = `no connection within ${options.timeoutMs} ms (${during})`;
    socket.destroy(new ConnectError('timeout', message, { address: tried }));
  }, options.timeoutMs);
  socket.setNoDelay(true);
  socket.once('connect', () => {
    stage = 'tls';
    tried = socket.remoteAddress;
  });
  socket.once(target.secure ? 'secureConnect' : 'connect', () => settle(null, socket));
  // This listener stays. Without it, an error before the new owner adds a listener would end the process.
  socket.on('error', (error) => settle(connectError(error, stage, tried), null));
  socket.once('close', () =>
    settle(new ConnectError('reset', 'the connection was closed before it was ready', { address: tried }), null),
  );
  return () => {
    if (!settled) socket.destroy();
  };
}

const blocked = (why: string, address: string): ConnectError =>
  new ConnectError('blocked', `${why}: webhooks go to public addresses only. ${ALLOW_HINT}`, { address });

function connectError(error: Error, stage: 'dns' | 'tcp' | 'tls', tried: string | undefined): ConnectError {
  if (error instanceof ConnectError) return error;
  // Happy eyeballs: every address failed. The error of the first address is reported.
  const first: unknown = 'errors' in error && Array.isArray(error.errors) ? error.errors[0] : error;
  const code = errorCode(first) ?? errorCode(error) ?? 'error';
  const more = { address: tried, cause: error };
  if (code === 'ETIMEDOUT') return new ConnectError('timeout', 'no connection: ETIMEDOUT', more);
  if (stage === 'tls') return new ConnectError('tls', `TLS handshake failed: ${code}`, more);
  if (UNREACHABLE.has(code)) return new ConnectError('refused', `no connection: ${code}`, more);
  return new ConnectError(stage === 'dns' ? 'dns' : 'reset', `no connection: ${code}`, more);
}
