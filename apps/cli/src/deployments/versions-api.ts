// Contract 7, "Versions": requests of the command line for versions of an app.
import { createReadStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventsOf } from '../service/events.ts';
import { Failure } from '../service/failures.ts';
import type { Service } from '../service/service.ts';
import { segment } from '../terminal/command.ts';
import { bytes, type Progress } from '../terminal/progress.ts';
import type { Archive } from './bundle.ts';

export type VersionState = 'building' | 'ready' | 'active' | 'failed' | 'retired';

/** The answer of `GET …/versions/{version}`, as far as this program reads it. */
export interface Version {
  readonly version: string;
  readonly state: VersionState;
  readonly rolling_out: boolean;
  readonly reason?: string;
}

interface LogLine {
  readonly time: string;
  readonly text: string;
}

/** Broken connections are tried again after these pauses, ms. */
const PAUSES_MS = [1000, 2000, 4000, 8000];

/** Returns the first digits of a version, which are enough for requests. */
export const short = (version: string): string => version.slice(0, 12);

/** Returns the failure of a roll-out whose version did not become active. */
export function notActive({ version, state, reason = 'another version was activated' }: Version): Failure {
  const what = state === 'failed' ? 'failed' : `did not become active and is ${state}`;
  return new Failure('failed', `The version ${short(version)} ${what}: ${reason}`);
}

export class Versions {
  readonly #service: Service;
  readonly #progress: Progress;
  readonly #path: string;

  constructor(service: Service, app: string, progress: Progress) {
    this.#service = service;
    this.#progress = progress;
    this.#path = `/apps/${segment(app)}`;
  }

  /** Returns a version, or undefined if the service does not know it. */
  async find(version: string): Promise<Version | undefined> {
    try {
      return JSON.parse(await this.#service.text('GET', `${this.#path}/versions/${version}`)) as Version;
    } catch (error) {
      if (error instanceof Failure && error.exit === 'notFound') return undefined;
      throw error;
    }
  }

  /**
   * Uploads a bundle. After a broken connection the upload starts again, unless the service has the version already.
   *
   * @param version the expected name, to find out whether a broken upload has arrived
   * @returns the name that the service has computed
   */
  async upload(archive: Archive, version: string, activate: boolean): Promise<string> {
    return this.#again('the upload starts again', async (attempt) => {
      const found = attempt > 0 ? await this.find(version) : undefined;
      if (found !== undefined && found.state !== 'failed') return found.version;
      const bar = this.#progress.bar('Uploading', archive.size);
      let text: string;
      try {
        text = await this.#service.text('POST', `${this.#path}/versions`, {
          query: { activate: activate ? undefined : false },
          headers: { 'content-type': 'application/gzip', 'content-length': String(archive.size) },
          body: counted(archive.path, (count) => bar.advance(count)),
        });
      } catch (error) {
        bar.end('The upload failed');
        throw error;
      }
      bar.end(`Uploaded ${bytes(archive.size)}`);
      return (JSON.parse(text) as { version: string }).version;
    });
  }

  async activate(version: string): Promise<void> {
    await this.#service.text('POST', `${this.#path}/versions/${version}/activate`);
  }

  /** Returns the number of lines in the log of a version. */
  async logLength(version: string): Promise<number> {
    const text = await this.#service.text('GET', `${this.#path}/versions/${version}/log`);
    return (JSON.parse(text) as { lines: LogLine[] }).lines.length;
  }

  /**
   * Follows the log of a version until its roll-out ends.
   *
   * @param from the number of lines to skip
   */
  async follow(version: string, from: number, line: (line: LogLine) => void): Promise<Version> {
    let seen = from;
    return this.#again('the log is read on', async () => {
      const path = `${this.#path}/versions/${version}/log`;
      const answer = await this.#service.send('GET', path, { query: { follow: true } });
      let at = 0;
      for await (const { event, data } of eventsOf(answer, this.#service.url)) {
        if (event === 'end') return JSON.parse(data) as Version;
        if (event !== 'line') continue;
        at++;
        if (at <= seen) continue;
        seen = at;
        line(JSON.parse(data) as LogLine);
      }
      throw new Failure('unavailable', 'The connection to the log broke');
    });
  }

  /** Repeats a step after a broken connection. */
  async #again<Result>(what: string, step: (attempt: number) => Promise<Result>): Promise<Result> {
    for (const [attempt, pause] of PAUSES_MS.entries()) {
      try {
        return await step(attempt);
      } catch (error) {
        if (!(error instanceof Failure) || error.exit !== 'unavailable') throw error;
        this.#progress.line(`${error.message}; ${what}`);
        await sleep(pause);
      }
    }
    return step(PAUSES_MS.length);
  }
}

async function* counted(path: string, sent: (count: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    yield chunk;
    sent(chunk.length);
  }
}
