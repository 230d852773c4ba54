// RFC 7515 §7.1: parses the text of a token strictly, before any key is asked for.
import { ServiceError } from '@inference-proxy/contracts';

/** The parts of a token's header that are read. Keys that a token contains or points to (`jwk`, `jku`, `x5c`, `x5u`) are never used. */
export interface TokenHeader {
  readonly alg: string;
  readonly kid?: string;
}

/** Long enough for the claims of a user with hundreds of groups. It bounds what strangers make the gateway decode, whatever the header limit. */
const LONGEST_TOKEN = 8192;

/**
 * Returns the header of a token in compact form.
 *
 * @throws ServiceError `unauthorized` if the text is malformed or needs an extension (RFC 7515 §4.1.11: no extension is supported)
 */
export function tokenHeader(token: string): TokenHeader {
  const parts = token.length <= LONGEST_TOKEN ? token.split('.', 4) : [];
  const [first = ''] = parts;
  if (parts.length !== 3 || !parts.every(isBase64Url)) throw notValid();
  const header = parsed(Buffer.from(first, 'base64url').toString());
  if (typeof header !== 'object' || header === null || 'crit' in header) throw notValid();
  const { alg, kid } = header as { alg?: unknown; kid?: unknown };
  if (typeof alg !== 'string' || (kid !== undefined && typeof kid !== 'string')) throw notValid();
  return { alg, ...(kid !== undefined && { kid }) };
}

export const notValid = (cause?: unknown): ServiceError =>
  new ServiceError('unauthorized', 'The token is not valid.', { cause });

/** Accepts only one spelling of the bytes (RFC 4648 §5, no padding). Node's decoder would accept many spellings. */
const isBase64Url = (part: string): boolean =>
  part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw notValid(cause);
  }
}
