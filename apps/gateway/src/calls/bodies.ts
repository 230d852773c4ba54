// Contract 1: a call's body, read after the guard and kept as the bytes that came.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '@inference-proxy/contracts';
import { hasBody } from '../http/has-body.ts';
import { GrowingBytes } from './growing-bytes.ts';

const NO_BODY = Buffer.alloc(0);

export interface BodyLimits {
  /** Of one body, `MAX_BODY_BYTES`. */
  readonly maxBytes: number;
  /** Of all that are held at a time, `BODIES_IN_FLIGHT_BYTES`: what callers can make this gateway hold. */
  readonly inFlightBytes: number;
  /** For one to arrive, ms. */
  readonly timeoutMs: number;
}

/** Reads bodies within these limits. */
export class Bodies {
  #held = 0;

  constructor(private readonly limits: BodyLimits) {}

  /** Of all bodies together. */
  get heldBytes(): number {
    return this.#held;
  }

  /**
   * Reads the body and holds it while `use` runs: its bytes count until then.
   *
   * @throws ServiceError `payload_too_large`, `overloaded`, `invalid_request`
   */
  async hold<T>(raw: ServerResponse, use: (body: Buffer) => Promise<T>): Promise<T> {
    if (!hasBody(raw.req.headers)) return use(NO_BODY);
    const body = new GrowingBytes();
    let counted = 0;
    const count = (): void => {
      this.#held += body.heldBytes - counted;
      counted = body.heldBytes;
    };
    try {
      await parsed();
      return await use(this.#arrived(raw.req, body, count) ?? (await this.#read(raw, body, count)));
    } finally {
      this.#held -= counted;
    }
  }

  /** A body that came along with its head, as most do: waiting for it as for others takes a timer and four listeners. */
  #arrived(req: IncomingMessage, body: GrowingBytes, count: () => void): Buffer | undefined {
    const { maxBytes, inFlightBytes } = this.limits;
    const { complete, destroyed, readableLength, headers } = req;
    if (!complete || destroyed || readableLength > maxBytes || headers.expect !== undefined) return undefined;
    const bytes: Buffer | null = req.read();
    if (bytes === null) return undefined;
    body.add(bytes);
    count();
    if (this.#held > inFlightBytes) throw tooMany();
    return bytes;
  }

  #read(raw: ServerResponse, body: GrowingBytes, count: () => void): Promise<Buffer> {
    const { req } = raw;
    const { maxBytes, inFlightBytes, timeoutMs } = this.limits;
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge(maxBytes));
    if (req.destroyed) return Promise.reject(endedEarly());
    // Only now is the caller told to go on: what was refused before cost it nothing (RFC 9110 §10.1.1).
    if (req.headers.expect !== undefined) raw.writeContinue();
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        req.off('data', onData).off('end', onEnd).off('close', onClose);
      };
      const onData = (chunk: Buffer): void => {
        if (body.length + chunk.length > maxBytes) {
          fail(tooLarge(maxBytes));
          return;
        }
        body.add(chunk);
        count();
        if (this.#held > inFlightBytes) fail(tooMany());
      };
      const onEnd = (): void => {
        settle();
        resolve(body.bytes());
      };
      const onClose = (): void => fail(endedEarly());
      const fail = (error: ServiceError): void => {
        settle();
        req.pause();
        reject(error);
      };
      const timer = setTimeout(() => {
        fail(new ServiceError('invalid_request', 'The body did not arrive in time.'));
      }, timeoutMs);
      req.on('data', onData).on('end', onEnd).on('close', onClose).on('error', ignore);
    });
  }
}

/** Node calls before it has parsed what came with a head; in the loop's next phase it has. */
const parsed = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const tooLarge = (maxBytes: number): ServiceError =>
  new ServiceError('payload_too_large', `The body is over ${maxBytes} bytes.`);

const tooMany = (): ServiceError => new ServiceError('overloaded', 'Too many large bodies at a time.');

const endedEarly = (): ServiceError => new ServiceError('invalid_request', 'The body ended early.');

/** 'close' follows and tells it. */
const ignore = (): void => {};
