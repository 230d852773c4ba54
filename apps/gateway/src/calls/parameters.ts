// Contract 1, "Body": the function's keyword parameters. The gateway checks a parsed copy and forwards the bytes unparsed.
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '@inference-proxy/contracts';

const NO_PARAMETERS = Buffer.from('{}');

/**
 * Returns the body's bytes if they are a JSON object. An empty body counts as `{}`.
 *
 * @throws ServiceError `invalid_request`
 */
export function parametersOf(bytes: Buffer): Buffer {
  if (bytes.length === 0) return NO_PARAMETERS;
  let value: unknown;
  try {
    if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8');
    value = JSON.parse(bytes.toString());
  } catch {
    throw new ServiceError('invalid_request', 'The body is not JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ServiceError('invalid_request', 'The body must be a JSON object: the function’s parameters.');
  }
  return bytes;
}
