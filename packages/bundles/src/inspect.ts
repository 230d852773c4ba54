// Contract 7, "Versions": reads a bundle without unpacking it, and returns its version: a hash of the contents, whatever the archive's dates are.
import { createHash } from 'node:crypto';
import { readArchive } from './archive.ts';
import { invalidBundle } from './entry-names.ts';

/** What a bundle contains. */
export interface Inspected {
  /** SHA-256 over the sorted list of files, 64 hex digits. */
  readonly version: string;
  readonly files: number;
  /** The sum of the sizes of all files. */
  readonly unpackedBytes: number;
  /** The text of the manifest, if the bundle has a manifest of at most 64 KiB. */
  readonly manifest?: string;
}

/** The names of files in the app's folder that matter for the service, each group in the order of precedence. */
export interface AppFiles {
  readonly manifests: readonly string[];
  /** Files of which an app needs one, beside the manifests. */
  readonly entries: readonly string[];
}

const MOST_MANIFEST_BYTES = 64 * 1024;

/**
 * Reads a whole bundle.
 *
 * @throws ServiceError `invalid_bundle`; the error of `source`
 */
export async function inspectBundle(source: AsyncIterable<Buffer>, names: AppFiles): Promise<Inspected> {
  const list = new VersionList();
  const manifests = new Map<string, string>();
  let unpackedBytes = 0;
  await readArchive(source, async (entry) => {
    if (entry.kind === 'folder') return;
    if (entry.kind === 'link') list.link(entry.path, entry.target);
    else if (entry.kind === 'copy') unpackedBytes += list.copy(entry.path, entry.of);
    else {
      const kept: Buffer[] | undefined =
        names.manifests.includes(entry.path) && entry.size <= MOST_MANIFEST_BYTES ? [] : undefined;
      const hash = createHash('sha256');
      for await (const chunk of entry.content) {
        hash.update(chunk);
        kept?.push(chunk);
      }
      list.file(entry.path, entry.executable, entry.size, hash.digest('hex'));
      unpackedBytes += entry.size;
      if (kept) manifests.set(entry.path, Buffer.concat(kept).toString());
    }
  });
  const entryFiles = [...names.manifests, ...names.entries];
  if (!entryFiles.some((name) => list.has(name)))
    throw invalidBundle(`it has no entry point: expected ${entryFiles.join(', ')} in the app's folder`);
  const first = names.manifests.find((name) => manifests.has(name));
  return {
    version: list.version(),
    files: list.size,
    unpackedBytes,
    ...(first !== undefined && { manifest: manifests.get(first) as string }),
  };
}

interface ListedFile {
  readonly mark: 'x' | '-' | 'l';
  readonly digest: string;
  readonly size: number;
}

/** The list of files whose hash is the version's name. Folders do not count. */
class VersionList {
  readonly #files = new Map<string, ListedFile>();

  get size(): number {
    return this.#files.size;
  }

  has(path: string): boolean {
    return this.#files.has(path);
  }

  file(path: string, executable: boolean, size: number, digest: string): void {
    this.#files.set(path, { mark: executable ? 'x' : '-', digest, size });
  }

  link(path: string, target: string): void {
    this.#files.set(path, { mark: 'l', digest: createHash('sha256').update(target).digest('hex'), size: 0 });
  }

  /** Adds a file with the content of an earlier file, and returns its size. */
  copy(path: string, of: string): number {
    const file = this.#files.get(of) as ListedFile;
    this.#files.set(path, file);
    return file.size;
  }

  version(): string {
    const hash = createHash('sha256');
    const paths = [...this.#files.keys()].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
    for (const path of paths) {
      const { mark, digest } = this.#files.get(path) as ListedFile;
      hash.update(`${path}\0${mark}\0${digest}\n`);
    }
    return hash.digest('hex');
  }
}
