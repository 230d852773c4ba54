// Contract 1, "Custom runtimes": computes the path and query that reach the app's server. Pure.
import { GATEWAY_PARAMETERS } from '../calls/query-names.ts';

/** The path up to the app: `/v4/{project}/{app}`. */
const PREFIX = /^(?:\/[^/?]*){3}/;
/** The most characters of a run's function name. */
const MAX_NAME = 256;

export interface ServerTarget {
  /** The path above the server's root: `/v4/{project}/{app}` as requested. */
  readonly prefix: string;
  /** Path and query below the app, as requested; begins with `/`. */
  readonly target: string;
  /** Function name of the run: the path without its first slash, cut to 256 characters; `/` for the root. */
  readonly name: string;
}

/**
 * Splits the target of a request at the app.
 *
 * @param url begins with `/v4/{project}/{app}`
 */
export function serverTarget(url: string): ServerTarget {
  const prefix = PREFIX.exec(url)?.[0] ?? '';
  const [path = '', ...rest] = url.slice(prefix.length).split('?');
  const query = rest.join('?');
  const kept = query.split('&').filter((pair) => !GATEWAY_PARAMETERS.includes(nameOf(pair)));
  const slashed = path === '' ? '/' : path;
  const asked = query === '' ? rest.length > 0 : kept.length > 0;
  return {
    prefix,
    target: asked ? `${slashed}?${kept.join('&')}` : slashed,
    name: printable(slashed).slice(1, 1 + MAX_NAME) || '/',
  };
}

/** Decodes a parameter's name as form encoding defines it. A name with a malformed percent-encoding stays unchanged. */
function nameOf(pair: string): string {
  const [name = ''] = pair.split('=', 1);
  try {
    return decodeURIComponent(name.replaceAll('+', ' '));
  } catch {
    return name;
  }
}

/** Percent-encodes bytes that a path must not contain, because Node accepts them. */
const printable = (path: string): string =>
  path.replace(/[^\x21-\x7e]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
