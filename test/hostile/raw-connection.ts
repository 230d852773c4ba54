// RFC 9112: sends bytes to the gateway's port and parses the answers without an HTTP client.
import { EventEmitter, once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  readonly version: string;
  readonly status: number;
  /** The names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Returns the contract's error code of an answer. */
export function codeOf({ body }: RawAnswer): string | undefined {
  return (JSON.parse(body) as { error?: { code: string } }).error?.code;
}

/**
 * Returns the complete answers at the beginning of a text, interim answers included.
 *
 * @param ended whether the connection has ended: then an answer without a length is complete, too
 * @param bodiless whether the requests were HEAD
 */
function answersIn(text: string, ended: boolean, bodiless = false): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let rest = text; ; ) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return answers;
    const [line = '', ...lines] = rest.slice(0, end).split('\r\n');
    const [, version, status] = /^(HTTP\/\d\.\d) (\d{3}) /.exec(line) ?? [];
    if (version === undefined) throw new Error(`the gateway sent a line that begins no HTTP answer: ${line}`);
    const headers = Object.fromEntries(
      lines.map((header) => {
        const [name = '', value = ''] = header.split(/: ?(.*)/s, 2);
        return [name.toLowerCase(), value];
      }),
    );
    const none = bodiless || Number(status) < 200 || status === '204' || status === '304';
    const found = none ? { body: '', length: 0 } : bodyIn(rest.slice(end + 4), headers, ended);
    if (found === undefined) return answers;
    answers.push({ version, status: Number(status), headers, body: found.body });
    rest = rest.slice(end + 4 + found.length);
  }
}

function bodyIn(
  text: string,
  headers: Record<string, string>,
  ended: boolean,
): { body: string; length: number } | undefined {
  const length = headers['content-length'];
  if (length !== undefined) {
    return text.length < Number(length) ? undefined : { body: text.slice(0, Number(length)), length: Number(length) };
  }
  if (headers['transfer-encoding'] !== 'chunked') return ended ? { body: text, length: text.length } : undefined;
  let body = '';
  for (let at = 0; ; ) {
    const line = text.indexOf('\r\n', at);
    const size = Number.parseInt(text.slice(at, line), 16);
    const next = line + 2 + size + 2;
    if (line === -1 || text.length < next) return undefined;
    body += text.slice(line + 2, line + 2 + size);
    if (size === 0) return { body, length: next };
    at = next;
  }
}

/** One connection to the gateway. Keeps received bytes as Latin-1: one character for each byte. */
export class RawConnection {
  #text = '';
  #ended = false;
  readonly #events = new EventEmitter();

  readonly #bodiless: boolean;

  private constructor(
    readonly socket: Socket,
    bodiless: boolean,
  ) {
    this.#bodiless = bodiless;

    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#text += text;
      this.#events.emit('news');
    });
    // A connection that is cut during a write also emits an error. 'close' follows.
    socket.on('error', () => {});
    const ended = (): void => {
      this.#ended = true;
      socket.end();
      this.#events.emit('news');
    };
    socket.on('end', ended).on('close', ended);
  }

  /** @param options.bodiless whether the requests of this connection are HEAD */
  static async open(port: number, { bodiless = false } = {}): Promise<RawConnection> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const connection = new RawConnection(socket, bodiless);
    await once(socket, 'connect');
    return connection;
  }

  get text(): string {
    return this.#text;
  }

  get answers(): RawAnswer[] {
    return answersIn(this.#text, this.#ended, this.#bodiless);
  }

  /** Returns the answers in the first `length` bytes. An answer to a final HEAD request has to be checked separately. */
  answersBefore(length: number): RawAnswer[] {
    return answersIn(this.#text.slice(0, length), true);
  }

  send(bytes: string | Buffer): this {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    return this;
  }

  /** Closes the sending side only. */
  halfClose(): this {
    this.socket.end();
    return this;
  }

  leave(): void {
    this.socket.destroy();
  }

  /** Resolves when `there` returns true. @throws Error if the connection closes first */
  async until(there: (connection: RawConnection) => boolean): Promise<this> {
    while (!there(this)) {
      if (this.#ended)
        throw new Error(`the gateway closed the connection too early, after ${JSON.stringify(this.#text)}`);
      await once(this.#events, 'news');
    }
    return this;
  }

  /** Returns the first `count` final answers. */
  async final(count = 1): Promise<RawAnswer[]> {
    const final = (): RawAnswer[] => this.answers.filter(({ status }) => status >= 200);
    await this.until(() => final().length >= count);
    return final();
  }

  /** Resolves when the gateway has closed the connection. */
  async end(): Promise<void> {
    while (!this.#ended) await once(this.#events, 'news');
  }

  /** Waits until the gateway has closed the connection. Returns all answers. */
  async closed(): Promise<RawAnswer[]> {
    await this.end();
    return this.answers;
  }
}

/** Sends bytes on a new connection. Returns all answers when the gateway has closed the connection. */
export async function exchange(port: number, bytes: string | Buffer): Promise<RawAnswer[]> {
  return (await RawConnection.open(port)).send(bytes).closed();
}

/** Sends bytes on a new connection. Returns the first complete answer without waiting for the gateway's timeout. */
export async function answerTo(port: number, bytes: string): Promise<RawAnswer> {
  const connection = await RawConnection.open(port);
  const [answer] = await connection
    .send(bytes)
    .until(({ answers }) => answers.length > 0)
    .then(({ answers }) => answers);
  connection.leave();
  return answer as RawAnswer;
}
