// Contract 1: a call's body, read after the guard and kept as the bytes that came. Checked on a parsed copy, forwarded unparsed.
import { isUtf8 } from 'node:buffer';
import type { ServerResponse } from 'node:http';
import { ServiceError } from '@inference-proxy/contracts';
import { hasBody } from '../http/has-body.ts';

const NO_PARAMETERS = Buffer.from('{}');
/** All bodies together, in units of the largest one: what callers can make this gateway hold. */
const LARGEST_BODIES_HELD = 32;

/** Reads bodies within two bounds: of one, and of all that are held at a time. */
export class Bodies {
  #held = 0;

  constructor(private readonly maxBytes: number) {}

  /** Of all bodies together. */
  get heldBytes(): number {
    return this.#held;
  }

  /**
   * Reads the body and holds it while `use` runs: its bytes count until then.
   *
   * @throws ServiceError `payload_too_large`, `overloaded`, `invalid_request`
   */
  async hold<T>(raw: ServerResponse, use: (parameters: Buffer) => Promise<T>): Promise<T> {
    if (!hasBody(raw.req.headers)) return use(NO_PARAMETERS);
    const held = { bytes: 0 };
    try {
      return await use(parametersOf(await this.#read(raw, held)));
    } finally {
      this.#held -= held.bytes;
    }
  }

  #read(raw: ServerResponse, held: { bytes: number }): Promise<Buffer> {
    const { req } = raw;
    if (Number(req.headers['content-length'] ?? 0) > this.maxBytes) return Promise.reject(this.#tooLarge());
    if (req.destroyed) return Promise.reject(endedEarly());
    // Only now is the caller told to go on: what was refused before cost it nothing (RFC 9110 §10.1.1).
    if (req.headers.expect !== undefined) raw.writeContinue();
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      const settle = (): void => {
        req.off('data', onData).off('end', onEnd).off('close', onClose);
      };
      const onData = (chunk: Buffer): void => {
        held.bytes += chunk.length;
        this.#held += chunk.length;
        chunks.push(chunk);
        if (held.bytes > this.maxBytes) fail(this.#tooLarge());
        else if (this.#held > this.maxBytes * LARGEST_BODIES_HELD) {
          fail(new ServiceError('overloaded', 'Too many large bodies at a time.'));
        }
      };
      const onEnd = (): void => {
        settle();
        const [first] = chunks;
        resolve(first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks));
      };
      const onClose = (): void => fail(endedEarly());
      const fail = (error: ServiceError): void => {
        settle();
        req.pause();
        reject(error);
      };
      req.on('data', onData).on('end', onEnd).on('close', onClose).on('error', ignore);
    });
  }

  #tooLarge(): ServiceError {
    return new ServiceError('payload_too_large', `The body is over ${this.maxBytes} bytes.`);
  }
}

const endedEarly = (): ServiceError => new ServiceError('invalid_request', 'The body ended early.');

/** 'close' follows and tells it. */
const ignore = (): void => {};

/** The bytes, when they are a JSON object. */
function parametersOf(bytes: Buffer): Buffer {
  if (bytes.length === 0) return NO_PARAMETERS;
  let value: unknown;
  try {
    if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8');
    value = JSON.parse(bytes.toString());
  } catch {
    throw new ServiceError('invalid_request', 'The body is not JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ServiceError('invalid_request', 'The body must be a JSON object: the function’s parameters.');
  }
  return bytes;
}
