// Contract 6, "Ports and pages": the files of a page. A page loads nothing from another host.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

export interface PageFile {
  readonly type: string;
  readonly etag: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
}

export const TYPES = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  woff2: 'font/woff2',
} as const;

/** Where a file is, and its media type. */
export interface FilePlace {
  readonly type: string;
  readonly path: string;
}

/** Reads each file once. The files do not change while the service runs. */
export class PageFiles {
  readonly #read = new Map<string, Promise<PageFile | undefined>>();
  readonly #placeOf: (name: string) => FilePlace | undefined;

  /** @param placeOf returns undefined for a name that no file of the page has */
  constructor(placeOf: (name: string) => FilePlace | undefined) {
    this.#placeOf = placeOf;
  }

  /** Returns the file with a name, or undefined if the page has no such file. */
  async file(name: string): Promise<PageFile | undefined> {
    const known = this.#read.get(name);
    if (known !== undefined) return known;
    const place = this.#placeOf(name);
    if (place === undefined) return undefined;
    const reading = read(place);
    this.#read.set(name, reading);
    const forget = (): boolean => this.#read.delete(name);
    // A failed read is tried again, and callers cannot fill the memory with names of files that do not exist.
    reading.then((found) => found ?? forget(), forget);
    return reading;
  }
}

async function read({ type, path }: FilePlace): Promise<PageFile | undefined> {
  try {
    const bytes = await readFile(path);
    const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`;
    return { type, etag, bytes, gzipped: await promisify(gzip)(bytes, { level: 9 }) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
