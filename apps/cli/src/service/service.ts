// Requests to the service, with the caller's token. An answer with an error status becomes a Failure.
import { Agent, request } from 'undici';
import { Failure, failureOf } from './failures.ts';

/** The address of a service, and a token for a project. */
export interface Connection {
  /** Without a slash at the end. */
  readonly url: string;
  readonly token: string;
  readonly project: string;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface RequestOptions {
  readonly query?: Query;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | AsyncIterable<Uint8Array>;
}

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  /** Yields the body as it arrives. */
  readonly bytes: AsyncIterable<Buffer>;
  text(): Promise<string>;
}

/** A call may take as long as the app's `timeout` allows, so the client sets no limit of its own. */
const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

/** Returns the failure of a connection that could not be made or that broke. */
export function brokenConnection(url: string, error: unknown): Failure {
  const cause = error as NodeJS.ErrnoException & { errors?: Error[] };
  const message = cause.message || cause.errors?.[0]?.message || String(cause.code);
  return new Failure('unavailable', `The connection to ${url} failed: ${message}`);
}

export class Service {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get url(): string {
    return this.#connection.url;
  }

  get project(): string {
    return this.#connection.project;
  }

  /** Returns the URL of a path below the project. */
  address(path: string, query: Query = {}): string {
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) given.append(name, String(value));
    const text = given.toString();
    return `${this.url}/v4/${encodeURIComponent(this.project)}${path}${text === '' ? '' : `?${text}`}`;
  }

  /**
   * Sends a request to a path below the project.
   *
   * @throws Failure if the service cannot be reached or answers with an error status
   */
  async send(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, options: RequestOptions = {}): Promise<Answer> {
    const { query, headers, body } = options;
    const answer = await request(this.address(path, query), {
      method,
      dispatcher: agent,
      headers: { authorization: `Bearer ${this.#connection.token}`, 'user-agent': 'inference-proxy-cli', ...headers },
      ...(body !== undefined && { body: body as string }),
    }).catch((error: unknown) => {
      throw brokenConnection(this.url, error);
    });
    const text = (): Promise<string> =>
      answer.body.text().catch((error: unknown) => {
        throw brokenConnection(this.url, error);
      });
    if (answer.statusCode >= 300) throw failureOf(answer.statusCode, await text());
    const type = answer.headers['content-type'];
    return { status: answer.statusCode, contentType: String(type ?? ''), bytes: answer.body, text };
  }

  /** Returns the text of an answer. */
  async text(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, options?: RequestOptions): Promise<string> {
    return (await this.send(method, path, options)).text();
  }
}

/** Closes idle connections, so that the process ends at once. */
export const closeConnections = (): Promise<void> => agent.close();
