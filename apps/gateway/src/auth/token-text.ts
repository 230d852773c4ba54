// RFC 7515 §7.1: the text of a token, taken apart strictly before any key is asked for.
import { ServiceError } from '@inference-proxy/contracts';

/** What of a token's header is read. Keys that it brings or points to (`jwk`, `jku`, `x5c`, `x5u`) never are. */
export interface TokenHeader {
  readonly alg: string;
  readonly kid?: string;
}

/** Claims of a user with hundreds of groups fit; what a stranger can make us decode does not grow with our header limit. */
const LONGEST_TOKEN = 8192;

/**
 * The header of a token in compact form.
 *
 * @throws ServiceError `unauthorized` where it is no such token, or asks for an extension (RFC 7515 §4.1.11: none is understood)
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

/** The one spelling of some bytes (RFC 4648 §5, no padding): Node's decoder would take many. */
const isBase64Url = (part: string): boolean =>
  part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw notValid(cause);
  }
}
