// A package index of Python on this machine, for tests: packages are made on the spot, and each request is counted.
// Source: packaging.python.org/en/latest/specifications/simple-repository-api
import { execFileSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Writes a zip or a tar.gz from JSON on stdin: {path, files: {name: text}}. */
const WRITE = `
import io, json, sys, tarfile, zipfile
given = json.load(sys.stdin)
if given["path"].endswith(".whl"):
    with zipfile.ZipFile(given["path"], "w") as archive:
        for name, text in given["files"].items(): archive.writestr(name, text)
else:
    with tarfile.open(given["path"], "w:gz") as archive:
        for name, text in given["files"].items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
`;

const EVENT = 'request';

export class PackageIndex {
  /** File names by package. */
  readonly #files = new Map<string, string[]>();
  readonly #server: Server;
  readonly #folder: string;
  readonly #events = new EventEmitter();
  #held = false;
  /** Paths of all requests. */
  readonly requests: string[] = [];
  /** The `Authorization` of all requests. */
  readonly credentials = new Set<string>();

  private constructor(folder: string) {
    this.#folder = folder;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<PackageIndex> {
    const index = new PackageIndex(await mkdtemp(join(tmpdir(), 'index-')));
    index.#server.listen(0, '127.0.0.1');
    await once(index.#server, 'listening');
    return index;
  }

  /** @param user `user:password` */
  url(user?: string): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://${user === undefined ? '' : `${user}@`}127.0.0.1:${port}/simple/`;
  }

  /** Adds a package with one module of the same name. @param requires other packages */
  addWheel(name: string, version: string, code: string, requires: readonly string[] = []): void {
    const info = `${name}-${version}.dist-info`;
    this.#add(name, `${name}-${version}-py3-none-any.whl`, {
      [`${name}.py`]: code,
      [`${info}/METADATA`]: metadata(name, version, requires),
      [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
      [`${info}/RECORD`]: `${name}.py,,\n${info}/METADATA,,\n${info}/WHEEL,,\n${info}/RECORD,,\n`,
    });
  }

  /** Adds a package that must be built. @param code the body of the function that builds the package */
  addSource(name: string, version: string, code: string): void {
    const folder = `${name}-${version}`;
    const body = code.replaceAll(/^/gm, '    ');
    this.#add(name, `${folder}.tar.gz`, {
      [`${folder}/PKG-INFO`]: metadata(name, version, []),
      [`${folder}/pyproject.toml`]: `[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "${name}"\nversion = "${version}"\n`,
      [`${folder}/backend.py`]: `def build_wheel(folder, settings=None, metadata=None):\n${body}\n`,
    });
  }

  /** Answers no request until `release`. */
  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    this.#events.emit('released');
  }

  /** Resolves at the next request. */
  async requested(): Promise<void> {
    await once(this.#events, EVENT);
  }

  /** Returns how often a file of the package was downloaded. */
  downloads(name: string): number {
    return this.requests.filter((path) => path.startsWith(`/files/${name}-`) && !path.endsWith('.metadata')).length;
  }

  async stop(): Promise<void> {
    this.release();
    this.#server.closeAllConnections();
    this.#server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #add(name: string, file: string, files: Record<string, string>): void {
    const path = join(this.#folder, file);
    execFileSync('python3', ['-c', WRITE], { input: JSON.stringify({ path, files }) });
    this.#files.set(name, [...(this.#files.get(name) ?? []), file]);
  }

  async #answer({ url = '', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push(url);
    if (headers.authorization !== undefined) this.credentials.add(headers.authorization);
    this.#events.emit(EVENT);
    if (this.#held) await once(this.#events, 'released');
    const [, place, name = ''] = url.split('/');
    const files = this.#files.get(name);
    if (place === 'files') {
      const bytes = await readFile(join(this.#folder, name)).catch(() => undefined);
      response.writeHead(bytes === undefined ? 404 : 200).end(bytes);
    } else if (files === undefined) response.writeHead(404).end();
    else {
      const links = files.map((file) => `<a href="../../files/${file}">${file}</a>`);
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<!DOCTYPE html><body>${links.join('\n')}</body>`);
    }
  }
}

const metadata = (name: string, version: string, requires: readonly string[]): string =>
  `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n${requires.map((one) => `Requires-Dist: ${one}\n`).join('')}`;
