// Contract 4, "Retries": the error of a connection that was not made, with the stage that failed.

/** `blocked`: the address policy rejected an address, and no address was dialled. */
export type ConnectFailure = 'blocked' | 'dns' | 'refused' | 'timeout' | 'tls' | 'reset';

/** Reports that no connection was made. `kind` is the cause; `address` is the rejected or failed address, if there is one. */
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
