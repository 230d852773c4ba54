// Chrome DevTools Protocol, domain Profiler: reports the source files whose functions a Node process has run.
import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

/** Returns the address of the inspector that a process has logged. @param logs of a process with `--inspect` */
export const inspectorIn = (logs: string): string | undefined =>
  /Debugger listening on (ws:\/\/[^\s"\\]+)/.exec(logs)?.[1];

/** Counts the calls of every function of a process. */
export class RanFunctions {
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #bundles = new Map<string, Bundle>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const { id, result, error } = JSON.parse(String(data));
      const answer = this.#answers.get(id);
      if (error) answer?.reject(new Error(error.message));
      else answer?.resolve(result);
    });
  }

  /** Connects to a process and starts the count. @param url of its inspector */
  static async start(url: string): Promise<RanFunctions> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', () => reject(new Error(`no inspector answers at ${url}`)));
    });
    const started = new RanFunctions(socket);
    await started.#ask('Profiler.enable');
    await started.#ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    return started;
  }

  /** Returns the source files whose functions ran since the last call of `take`, as absolute paths. */
  async take(): Promise<ReadonlySet<string>> {
    const { result } = (await this.#ask('Profiler.takePreciseCoverage')) as { result: readonly ScriptCoverage[] };
    const files = new Set<string>();
    for (const { url, functions } of result) {
      if (!url.startsWith('file:')) continue;
      const bundle = this.#bundles.get(url) ?? new Bundle(fileURLToPath(url));
      this.#bundles.set(url, bundle);
      for (const { ranges } of functions) {
        const [whole] = ranges;
        if (whole !== undefined && whole.count > 0) files.add(bundle.sourceAt(whole.startOffset));
      }
    }
    return files;
  }

  close(): void {
    this.#socket.close();
  }

  #ask(method: string, params: object = {}): Promise<unknown> {
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<unknown>();
    this.#answers.set(id, answer);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return answer.promise;
  }
}

/** A JavaScript file with its source map. */
class Bundle {
  readonly #path: string;
  /** Offset of the first character of each line. */
  readonly #lines: readonly number[];
  readonly #map: SourceMap;

  constructor(path: string) {
    this.#path = path;
    const text = readFileSync(path, 'utf8');
    this.#lines = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
    this.#map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')) as SourceMapPayload);
  }

  /** Returns the path of the source that a character of the bundle comes from. */
  sourceAt(offset: number): string {
    const line = this.#lines.findLastIndex((start) => start <= offset);
    const entry = this.#map.findEntry(line, offset - (this.#lines[line] ?? 0));
    return 'originalSource' in entry ? join(dirname(this.#path), entry.originalSource) : this.#path;
  }
}
