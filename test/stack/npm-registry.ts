// A registry of npm packages on this machine, for tests: packages are made on the spot, and each download is counted.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { packed } from '../client/deployer.ts';

interface Version {
  readonly manifest: object;
  readonly archive: Buffer;
}

export class NpmRegistry {
  /** Versions by package. */
  readonly #packages = new Map<string, Map<string, Version>>();
  readonly #server: Server;
  readonly #requests: string[] = [];
  readonly credentials = new Set<string>();

  private constructor() {
    this.#server = createServer(({ url = '', headers }, response) => {
      this.#requests.push(url);
      if (headers.authorization !== undefined) this.credentials.add(headers.authorization);
      const [, name = '', file] = url.split('/');
      const versions = this.#packages.get(name);
      const version = file === undefined ? undefined : versions?.get(file.slice(0, -'.tgz'.length));
      if (version) response.end(version.archive);
      else if (versions === undefined || file !== undefined) response.writeHead(404).end();
      else {
        const entries = [...versions].map(([number, { manifest }]) => [number, manifest]);
        const latest = [...versions.keys()].at(-1);
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ name, 'dist-tags': { latest }, versions: Object.fromEntries(entries) }));
      }
    });
  }

  static async start(): Promise<NpmRegistry> {
    const registry = new NpmRegistry();
    registry.#server.listen(0, '127.0.0.1');
    await once(registry.#server, 'listening');
    return registry;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** Adds a package. @param more keys of its `package.json`, such as `scripts` */
  async add(name: string, version: string, code: string, more: object = {}): Promise<void> {
    const manifest = { name, version, main: 'index.js', ...more };
    const files = { 'package/package.json': JSON.stringify(manifest), 'package/index.js': code };
    const archive = await packed(files, ['package']);
    const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
    const dist = { tarball: `${this.url}${name}/${version}.tgz`, integrity };
    const versions = this.#packages.get(name) ?? new Map<string, Version>();
    versions.set(version, {
      manifest: { ...manifest, ...('scripts' in more && { hasInstallScript: true }), dist },
      archive,
    });
    this.#packages.set(name, versions);
  }

  /** Returns how often an archive of the package was downloaded. */
  downloads(name: string): number {
    return this.#requests.filter((path) => path.startsWith(`/${name}/`)).length;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
