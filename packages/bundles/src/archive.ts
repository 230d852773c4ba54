// Contract 7, "Bundle rules": reads the entries of a bundle, a `.tar.gz`, as a stream. Each entry is checked before its content is passed on.
import { once } from 'node:events';
import { createGunzip, type Gunzip } from 'node:zlib';
import { Parser, type ReadEntry } from 'tar';
import { checkLink, EntryNames, invalidBundle, relativePath, shown } from './entry-names.ts';
import { collectYoungGarbage } from './young-garbage.ts';

/** An entry of a bundle. Its path is relative to the app's folder and has passed all rules. */
export type BundleEntry =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly executable: boolean;
      readonly size: number;
      readonly content: AsyncIterable<Buffer>;
    }
  | { readonly kind: 'folder'; readonly path: string }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  /** A hard link to an earlier file. */
  | { readonly kind: 'copy'; readonly path: string; readonly of: string };

const GIB = 2 ** 30;
const MOST_ENTRIES = 50_000;
const MOST_BYTES = 2 * GIB;
/** Headers, padding and extended names of the largest bundle. */
const MOST_ARCHIVE_BYTES = MOST_BYTES + MOST_ENTRIES * 2048;
/** A block of extended names. The longest path that is allowed is much shorter. */
const MOST_META_BYTES = 64 * 1024;
/** Decompressed bytes after which the memory of used chunks is freed. */
const GARBAGE_BYTES = 8 * 1024 * 1024;
const OWNER_MAY_EXECUTE = 0o100;

const FILES: ReadonlySet<string> = new Set(['File', 'OldFile', 'ContiguousFile']);
const FOLDERS: ReadonlySet<string> = new Set(['Directory', 'GNUDumpDir']);

/** First bytes of compressed data. The parser would decompress such data again, past the limit of bytes. */
const COMPRESSED = [Buffer.from([0x1f, 0x8b]), Buffer.from([0x28, 0xb5, 0x2f, 0xfd])];

/**
 * Calls `visit` for each entry, one at a time. Takes the next chunk of `source` only after the last chunk is decompressed, so that the
 * source may reuse or free its memory.
 *
 * @throws ServiceError `invalid_bundle`; the error of `source` or of `visit`
 */
export async function readArchive(
  source: AsyncIterable<Buffer>,
  visit: (entry: BundleEntry) => Promise<void>,
): Promise<void> {
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const entries = new EntryReader(visit);
  let visited = Promise.resolve();
  const parser = new Parser({
    strict: true,
    maxMetaEntrySize: MOST_META_BYTES,
    onReadEntry: (entry: ReadEntry) => {
      visited = visited.then(() => entries.take(entry));
      visited.catch(failed.reject);
    },
  });
  parser.on('error', (error: unknown) => failed.reject(damaged(error)));
  parser.on('ignoredEntry', (entry: ReadEntry) => failed.reject(unsupported(entry)));
  const ended = once(parser, 'end');
  ended.catch(() => {});
  for await (const chunk of unzipped(source)) {
    // The race also ends the reading at the first error, while the parser still takes bytes.
    await Promise.race([failed.promise, parser.write(chunk) ? undefined : once(parser, 'drain')]);
  }
  parser.end();
  await Promise.race([ended, failed.promise]);
  await visited;
  // An error of the last block is reported in the same turn as the end.
  await Promise.race([failed.promise, Promise.resolve()]);
}

const damaged = (error: unknown) => invalidBundle('the archive is damaged or truncated', error);

const unsupported = ({ path, type }: ReadEntry) =>
  invalidBundle(`${shown(path)} has the type ${type}; only files, folders and links are allowed`);

/** Decompresses the bundle within the limit of bytes. */
async function* unzipped(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  let sourceError: unknown;
  const feeding = feed(source, gunzip).catch((error: unknown) => {
    sourceError = error;
    gunzip.destroy(error instanceof Error ? error : new Error(String(error)));
  });
  let bytes = 0;
  let kept = 0;
  let first: Buffer | undefined = Buffer.alloc(0);
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MOST_ARCHIVE_BYTES) throw tooLarge();
      kept += chunk.length;
      if (kept > GARBAGE_BYTES) {
        collectYoungGarbage();
        kept = 0;
      }
      if (first === undefined) {
        yield chunk;
        continue;
      }
      first = Buffer.concat([first, chunk]);
      if (first.length < 4) continue;
      const start: Buffer = first;
      if (COMPRESSED.some((magic) => start.subarray(0, magic.length).equals(magic))) throw damaged(undefined);
      first = undefined;
      yield start;
    }
  } catch (error) {
    if (sourceError !== undefined) throw sourceError;
    const code = (error as { code?: unknown }).code;
    if (typeof code === 'string' && code.startsWith('Z_')) throw invalidBundle('it is not a whole gzip archive', error);
    throw error;
  } finally {
    gunzip.destroy();
    // The source has ended its work when this generator ends.
    await feeding;
  }
  if (first !== undefined) throw damaged(undefined);
}

/** Writes the source to the decompressor, one chunk at a time. Ends early without an error if the decompressor is destroyed. */
async function feed(source: AsyncIterable<Buffer>, gunzip: Gunzip): Promise<void> {
  // A destroyed decompressor never calls back for the chunk that it was working on.
  let taken = (_isTaken: boolean): void => {};
  gunzip.once('close', () => taken(false));
  for await (const chunk of source) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    taken = resolve;
    if (gunzip.destroyed) return;
    gunzip.write(chunk, (error) => resolve(!error));
    if (!(await promise)) return;
  }
  gunzip.end();
}

const tooLarge = () => invalidBundle('it has more than 2 GiB unpacked');

/** Checks entries in their order and passes them on. */
class EntryReader {
  readonly #names = new EntryNames();
  #entries = 0;
  #bytes = 0;

  readonly #visit: (entry: BundleEntry) => Promise<void>;

  constructor(visit: (entry: BundleEntry) => Promise<void>) {
    this.#visit = visit;
  }

  async take(entry: ReadEntry): Promise<void> {
    if (++this.#entries > MOST_ENTRIES) throw invalidBundle(`it has more than ${MOST_ENTRIES} entries`);
    const checked = this.#checked(entry);
    await this.#visit(checked);
    entry.resume();
  }

  #checked(entry: ReadEntry): BundleEntry {
    const { path: raw, type, mode = 0, size } = entry;
    if (FILES.has(type)) {
      this.#bytes += size;
      if (this.#bytes > MOST_BYTES) throw tooLarge();
      const path = this.#names.add(raw, 'file');
      const executable = (mode & OWNER_MAY_EXECUTE) !== 0;
      return { kind: 'file', path, executable, size, content: entry };
    }
    if (FOLDERS.has(type)) return { kind: 'folder', path: this.#names.add(raw, 'folder') };
    const target = entry.linkpath ?? '';
    if (type === 'SymbolicLink') {
      const path = this.#names.add(raw, 'link');
      checkLink(path, target);
      return { kind: 'link', path, target };
    }
    if (type === 'Link') {
      const of = relativePath(target);
      if (!this.#names.hasFile(of)) throw invalidBundle(`the link ${shown(raw)} names no earlier file`);
      return { kind: 'copy', path: this.#names.add(raw, 'file'), of };
    }
    throw unsupported(entry);
  }
}
