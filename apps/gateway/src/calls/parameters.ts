// Contract 1, "Body": the function's keyword parameters. Checked on a parsed copy, forwarded unparsed.
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '@inference-proxy/contracts';

const NO_PARAMETERS = Buffer.from('{}');

/**
 * A body's bytes, when they are a JSON object; no body is an empty one.
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
