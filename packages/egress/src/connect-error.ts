// webhooks.md "An attempt": what kept a connection from being made, by the stage that it failed in.

/** `blocked`: the address policy refused, nothing was dialled. */
export type ConnectFailure = 'blocked' | 'dns' | 'refused' | 'timeout' | 'tls' | 'reset';

/** No connection; `kind` says why, `address` which address was refused or failed, where there is one. */
export class ConnectError extends Error {
  override readonly name = 'ConnectError';
  readonly kind: ConnectFailure;
  readonly address: string | undefined;

  constructor(kind: ConnectFailure, message: string, more: { address?: string | undefined; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.kind = kind;
    this.address = more.address;
  }
}
