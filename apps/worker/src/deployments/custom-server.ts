// An app's own web server as its manifest has it: `[runtime.custom]`, in the hosted product's words where it has them.
import { z } from 'zod';

/** A server of an app's own, started by its worker or running elsewhere. */
export interface CustomServer {
  /** Program and arguments; absent where the server runs elsewhere. */
  readonly entrypoint: readonly string[] | undefined;
  /** Where it runs, if it is not ours to start; no trailing slash. */
  readonly url: string | undefined;
  /** The one port it listens on; absent: one that is free at its start, told as `PORT`. */
  readonly port: number | undefined;
  /** Path that answers 2xx while it is well; '': that it takes connections is enough. */
  readonly healthcheck: string;
  /** Path that answers 2xx while it can be given requests; '' likewise. */
  readonly readycheck: string;
  /** Whether it gets the caller's `Authorization`. */
  readonly forwardAuth: boolean;
  /** Whether it is ended when one of its runs is cancelled, because it does not notice that its caller has gone. */
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

/** @throws Error in words for the app's author */
export function customServer(section: z.output<typeof customServerSection>): CustomServer {
  const { entrypoint, url, port } = section;
  if ((entrypoint === undefined) === (url === undefined)) throw new Error('expected either entrypoint or url');
  if (url !== undefined && port !== undefined) throw new Error('port: a url says its port itself');
  if (url !== undefined && section.kill_on_cancel)
    throw new Error('kill_on_cancel: a server that runs elsewhere is not ours to end');
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
    throw new Error('url: expected scheme, host, port and path alone');
  return `${url.origin}${withoutTrailingSlashes(url.pathname)}`;
}

/** The root becomes empty. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/** A command line's words as a shell splits them; no shell runs it, so nothing else of one's language means anything. */
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
  if (quote !== '') throw new Error(`entrypoint: a ${quote} is not closed`);
  if (word !== undefined) found.push(word);
  if (found.length === 0) throw new Error('entrypoint: expected a program');
  return found;
}
