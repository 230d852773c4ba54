// Contract 1: an HTTP client for tests. It uses Node's own client: one connection for each call, no decoding, no redirects.
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';

export interface RequestOptions {
  /** POST by default. */
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  /** Aborts the call: the caller disconnects. */
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** The contract's error object. */
export interface AnsweredError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly type?: string;
  readonly details?: readonly unknown[];
}

/** Sends a request, as JSON if it has a body. Returns the answer when its head has arrived. */
export function open(
  port: number,
  path: string,
  { method = 'POST', headers, body, signal }: RequestOptions = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        agent: false,
        ...(signal && { signal }),
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      },
      resolve,
    );
    request.on('error', reject);
    // The body is sent as bytes. Node would send a text together with the head, and encode the head's bytes as UTF-8 again.
    request.end(typeof body === 'string' ? Buffer.from(body) : body);
  });
}

export async function request(port: number, path: string, options?: RequestOptions): Promise<Answer> {
  const answer = await open(port, path, options);
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await textOf(answer) };
}

export async function bytesOf(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export const textOf = async (answer: IncomingMessage): Promise<string> => (await bytesOf(answer)).toString();

/** Returns the contract's error object of an answer. */
export const errorOf = (answer: Pick<Answer, 'text'>): AnsweredError =>
  (JSON.parse(answer.text) as { error: AnsweredError }).error;
