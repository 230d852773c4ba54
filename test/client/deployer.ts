// Contract 7: a client that deploys apps and reads their versions.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { create } from 'tar';
import { Caller } from './caller.ts';
import type { Answer, AnsweredError } from './http.ts';
import { until } from './until.ts';

const SCOPES = ['call', 'runs:read', 'runs:write', 'apps:write'];

/** The fields of a version that tests read. */
export interface VersionAnswer {
  readonly version: string;
  readonly state: string;
  readonly rolling_out: boolean;
  readonly reason?: string;
  readonly activations: readonly object[];
}

interface JsonAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** Packs files as the usual tar program does. @param entries the packed files and folders; default: the folder of the files */
export async function packed(files: Readonly<Record<string, string>>, entries = ['.']): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'app-'));
  try {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    const chunks: Buffer[] = [];
    for await (const chunk of create({ gzip: true, cwd: folder }, entries)) chunks.push(chunk);
    return Buffer.concat(chunks);
  } finally {
    await rm(folder, { recursive: true });
  }
}

export class Deployer {
  readonly caller: Caller;
  readonly #jwtSecret: string;

  constructor(port: number, jwtSecret: string, project: string) {
    this.#jwtSecret = jwtSecret;
    this.caller = new Caller(port, jwtSecret, project, { sub: 'ada', scope: SCOPES });
  }

  /** Returns the header of a token with these scopes. */
  headers(scope: readonly string[]): Record<string, string> {
    const { port, project } = this.caller;
    return { authorization: new Caller(port, this.#jwtSecret, project, { scope }).bearer };
  }

  /** Uploads a bundle. @param app may end with a query */
  async upload(
    app: string,
    bundle: Buffer,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; version: string; state: string; error?: AnsweredError }> {
    const [name, query = ''] = app.split('?');
    const answer = await this.caller.request(
      `${this.caller.path}/apps/${name}/versions${query === '' ? '' : `?${query}`}`,
      { headers: { 'content-type': 'application/gzip', ...headers }, body: bundle },
    );
    return { status: answer.status, ...JSON.parse(answer.text) };
  }

  /** Packs and uploads files. @param query with its `?` */
  async deploy(app: string, files: Readonly<Record<string, string>>, query = '') {
    return this.upload(app + query, await packed(files));
  }

  raw(method: string, path: string): Promise<Answer> {
    return this.caller.request(this.caller.path + path, { method });
  }

  async request(method: string, path: string): Promise<JsonAnswer> {
    const { status, text } = await this.raw(method, path);
    return { status, body: JSON.parse(text) as Record<string, unknown> };
  }

  async version(app: string, version: string): Promise<VersionAnswer> {
    return (await this.request('GET', `/apps/${app}/versions/${version}`)).body as unknown as VersionAnswer;
  }

  /** Returns the version after its roll-out has ended. */
  settled(app: string, version: string): Promise<VersionAnswer> {
    return until(async () => {
      const found = await this.version(app, version);
      return !found.rolling_out && found;
    });
  }

  call(app: string, fn: string, params: object = {}, headers: Record<string, string> = {}): Promise<Answer> {
    return this.caller.call(`${app}/${fn}`, params, { headers });
  }

  until(look: () => Promise<boolean>): Promise<true> {
    return until(look);
  }
}
