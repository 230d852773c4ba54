// Contract 1, "Custom runtimes": which path and query reach the app's server. Pure.

/** Up to the app: `/v4/{project}/{app}`. */
const PREFIX = /^(?:\/[^/?]*){3}/;
/** What is ours in a query; `ids` and `events` are the server's. */
const OURS = new Set(['webhookEndpoint', 'async', 'onDisconnect']);
/** What a run may be called. */
const MAX_NAME = 256;

export interface ServerTarget {
  /** What stands before: `/v4/{project}/{app}` as it was asked for. */
  readonly prefix: string;
  /** Path and query below the app, as they were asked for; begins with `/`. */
  readonly target: string;
  /** What the run's function is called: the path without its first slash, at most 256 characters of it; `/` for the root. */
  readonly name: string;
}

/** @param url a request's target that begins with `/v4/{project}/{app}` */
export function serverTarget(url: string): ServerTarget {
  const prefix = PREFIX.exec(url)?.[0] ?? '';
  const [path = '', ...rest] = url.slice(prefix.length).split('?');
  const query = rest.join('?');
  const kept = query.split('&').filter((pair) => !OURS.has(nameOf(pair)));
  const slashed = path === '' ? '/' : path;
  const asked = query === '' ? rest.length > 0 : kept.length > 0;
  return {
    prefix,
    target: asked ? `${slashed}?${kept.join('&')}` : slashed,
    name: printable(slashed).slice(1, 1 + MAX_NAME) || '/',
  };
}

/** As forms write names; what is no percent-encoding is nobody's name but its own. */
function nameOf(pair: string): string {
  const [name = ''] = pair.split('=', 1);
  try {
    return decodeURIComponent(name.replaceAll('+', ' '));
  } catch {
    return name;
  }
}

/** Node lets bytes through that no path should have. */
const printable = (path: string): string =>
  path.replace(/[^\x21-\x7e]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
