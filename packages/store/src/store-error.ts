// Contract 2, "Errors": maps a failed call to Redis to an error of the service.
import { ServiceError } from '@inference-proxy/contracts';

/**
 * Codes of Redis' error replies that end without a change of this service: a restart, a failover, a disk or a replica that is away.
 * Every other code is a fault of this service or of its configuration, such as a bug in a script, WRONGTYPE or NOPERM.
 */
const OUTAGES: ReadonlySet<string> = new Set([
  'READONLY',
  'LOADING',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'MOVED',
  'ASK',
  'BUSY',
  'MISCONF',
  'NOREPLICAS',
  'NOMASTERLINK',
  // Redis and the services receive a new password at different times.
  'NOAUTH',
  'WRONGPASS',
]);
const TOO_MANY_CLIENTS = 'ERR max number of clients reached';
/** Errors of this service's code: the reply was not what the code expected. */
const CODE_FAULTS: ReadonlySet<string> = new Set(['TypeError', 'RangeError', 'SyntaxError', 'ReferenceError']);

/** Returns the error for callers: `overloaded` without memory, `internal` for a fault of the service, otherwise `unavailable`. */
export function storeError(cause: unknown): ServiceError {
  if (cause instanceof ServiceError) return cause;
  if (!(cause instanceof Error)) return new ServiceError('unavailable', 'The run store is not available.', { cause });
  const { name, message } = cause;
  const [code = ''] = message.split(' ', 1);
  if (code === 'OOM') return new ServiceError('overloaded', 'The run store is full.', { cause });
  const refused = name === 'ReplyError' && !OUTAGES.has(code) && !message.startsWith(TOO_MANY_CLIENTS);
  return refused || CODE_FAULTS.has(name)
    ? new ServiceError('internal', 'A call to the run store failed.', { cause })
    : new ServiceError('unavailable', 'The run store is not available.', { cause });
}
