// Contract 6: the files of `GET /docs`. The page loads nothing from another host.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/** The page's own files, outside the sources because browsers run them. */
const PAGE = new URL('../../page/', import.meta.url);
const modules = createRequire(import.meta.url);

const ofPage = (name: string): string => fileURLToPath(new URL(name, PAGE));
const ofSwagger = (name: string): string => modules.resolve(`swagger-ui-dist/${name}`);

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** By name: the media type and the path of a file. The name of the page itself is empty. */
const FILES: Readonly<Record<string, readonly [type: string, path: () => string]>> = {
  '': [HTML, () => ofPage('index.html')],
  'page.js': [SCRIPT, () => ofPage('page.js')],
  'live.js': [SCRIPT, () => ofPage('live.js')],
  'page.css': [CSS, () => ofPage('page.css')],
  'swagger-ui-bundle.js': [SCRIPT, () => ofSwagger('swagger-ui-bundle.js')],
  'swagger-ui.css': [CSS, () => ofSwagger('swagger-ui.css')],
  'favicon-32x32.png': ['image/png', () => ofSwagger('favicon-32x32.png')],
};

export interface PageFile {
  readonly type: string;
  readonly etag: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
}

/** Reads each file once. The files do not change while the service runs. */
export class PageFiles {
  readonly #read = new Map<string, Promise<PageFile>>();

  /** Returns the file with a name, or undefined if the page has no such file. */
  file(name: string): Promise<PageFile> | undefined {
    if (!Object.hasOwn(FILES, name)) return undefined;
    const [type, path] = FILES[name] as (typeof FILES)[string];
    const known = this.#read.get(name);
    if (known !== undefined) return known;
    const reading = read(type, path());
    this.#read.set(name, reading);
    // A failed read is tried again.
    reading.catch(() => this.#read.delete(name));
    return reading;
  }
}

async function read(type: string, path: string): Promise<PageFile> {
  const bytes = await readFile(path);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`;
  return { type, etag, bytes, gzipped: await promisify(gzip)(bytes) };
}
