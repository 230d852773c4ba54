// Contract 1, "Custom runtimes": the section `[runtime.custom]` of a manifest. Keys have the names of the hosted product if possible.
import { z } from 'zod';

/** The web server of an app. The worker starts the server, or the server runs elsewhere. */
export interface CustomServer {
  /** Program and arguments. Absent if the server runs elsewhere. */
  readonly entrypoint: readonly string[] | undefined;
  /** The URL of a server that runs elsewhere, without a trailing slash. */
  readonly url: string | undefined;
  /** The server's fixed port. Absent: the worker chooses a free port at each start and passes it as `PORT`. */
  readonly port: number | undefined;
  /** The path that answers 2xx while the server is healthy. '': the server is healthy if it accepts connections. */
  readonly healthcheck: string;
  /** The path that answers 2xx while the server is ready for requests. '': the server is ready if it accepts connections. */
  readonly readycheck: string;
  /** Whether the server receives the caller's `Authorization`. */
  readonly forwardAuth: boolean;
  /** Whether a cancelled run ends the server, because the server does not notice a disconnect. */
  readonly killOnCancel: boolean;
}

const path = z
  .string()
  .max(1_024)
  .refine((text) => text === '' || /^\/?[^\s#]+$/.test(text), 'expected a path')
  .transform((text) => (text === '' || text.startsWith('/') ? text : `/${text}`))
  .default('');

export const customServerSection = z.looseObject({
  entrypoint: z.union([z.string(), z.array(z.string().min(1)).min(1)]).optional(),
  url: z.string().min(1).optional(),
  port: z.number().int().min(0).max(65_535).optional(),
  healthcheck_endpoint: path,
  readycheck_endpoint: path,
  forward_auth: z.boolean().default(false),
  kill_on_cancel: z.boolean().default(false),
});

/** Checks the section and returns its server. @throws Error with a message for the app's author */
export function customServer(section: z.output<typeof customServerSection>): CustomServer {
  const { entrypoint, url, port } = section;
  if ((entrypoint === undefined) === (url === undefined)) throw new Error('expected either entrypoint or url');
  if (url !== undefined && port !== undefined) throw new Error('port: a url already contains the port');
  if (url !== undefined && section.kill_on_cancel)
    throw new Error('kill_on_cancel: the worker cannot end a server that runs elsewhere');
  return {
    entrypoint: typeof entrypoint === 'string' ? words(entrypoint) : entrypoint,
    url: url === undefined ? undefined : base(url),
    port: port === 0 ? undefined : port,
    healthcheck: section.healthcheck_endpoint,
    readycheck: section.readycheck_endpoint,
    forwardAuth: section.forward_auth,
    killOnCancel: section.kill_on_cancel,
  };
}

function base(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) throw new Error('url: expected http:// or https://');
  if (url.username || url.password || url.search || url.hash)
    throw new Error('url: expected scheme, host, port and path only');
  return `${url.origin}${withoutTrailingSlashes(url.pathname)}`;
}

/** Returns the path without trailing slashes. The root becomes empty. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/** Splits a command line into words, as a shell does. No shell runs the line, so all other shell syntax has no effect. */
function words(line: string): string[] {
  const found: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let at = 0; at < line.length; at++) {
    const char = line[at] as string;
    if (quote !== '') {
      if (char === quote) quote = '';
      else if (char === '\\' && quote === '"' && /["\\]/.test(line[at + 1] ?? '')) word = `${word}${line[++at]}`;
      else word = `${word}${char}`;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= '';
    } else if (/\s/.test(char)) {
      if (word !== undefined) found.push(word);
      word = undefined;
    } else {
      word = (word ?? '') + (char === '\\' ? (line[++at] ?? '') : char);
    }
  }
  if (quote !== '') throw new Error(`entrypoint: the quote ${quote} is not closed`);
  if (word !== undefined) found.push(word);
  if (found.length === 0) throw new Error('entrypoint: expected a program');
  return found;
}
