// Archives for tests, with entries that no honest program writes.
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';

export interface TestEntry {
  readonly path: string;
  readonly content?: string | Buffer;
  /** Size in the header, if it differs from the content's. */
  readonly size?: number;
  readonly type?: Header['type'];
  readonly linkpath?: string;
  readonly mode?: number;
  readonly mtime?: Date;
}

const BLOCK = 512;
const padded = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)]);

/** Returns the blocks of one entry. */
export function entryBytes({ path, content = '', type = 'File', linkpath, mode = 0o644, ...more }: TestEntry): Buffer {
  const body = Buffer.from(content);
  const size = more.size ?? body.length;
  const header = new Header({
    path,
    type,
    size,
    mode,
    mtime: more.mtime ?? new Date(0),
    ...(linkpath && { linkpath }),
  });
  const block = Buffer.alloc(BLOCK);
  header.encode(block, 0);
  return Buffer.concat([block, padded(body)]);
}

export const tarBytes = (entries: readonly TestEntry[]): Buffer =>
  Buffer.concat([...entries.map(entryBytes), Buffer.alloc(2 * BLOCK)]);

export const bundleBytes = (entries: readonly TestEntry[]): Buffer => gzipSync(tarBytes(entries));

export const asStream = (bytes: Buffer): Readable => Readable.from([bytes], { objectMode: false });
