// Contract 1, "Body": reads a call's body after the guard and keeps the bytes as received.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '@inference-proxy/contracts';
import { hasBody } from '../http/request-head.ts';

const NO_BODY: Buffer = Buffer.alloc(0);

export interface BodyLimits {
  /** Limit of one body, `MAX_BODY_BYTES`. */
  readonly maxBytes: number;
  /** Limit of all bodies held at one time, `BODIES_IN_FLIGHT_BYTES`. It bounds the memory that callers can occupy in this gateway. */
  readonly inFlightBytes: number;
  /** Time in which one body must arrive, ms. */
  readonly timeoutMs: number;
}

/** Reads bodies within these limits. */
export class Bodies {
  #held = 0;

  readonly #limits: BodyLimits;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Limit of one body. */
  get maxBytes(): number {
    return this.#limits.maxBytes;
  }

  /** The longest time before a body is read, ms. The rest of the time is for the body itself. */
  get waitMs(): number {
    return this.#limits.timeoutMs / 2;
  }

  /** Bytes of all bodies that are held now. */
  get heldBytes(): number {
    return this.#held;
  }

  /**
   * Reads the body and passes it to `use`. The bytes count as held until `use` has ended.
   *
   * @param appBytes the app's own limit of one body, `[scaling] max_body_bytes`
   * @throws ServiceError `payload_too_large`, `overloaded`, `invalid_request`
   */
  async hold<T>(raw: ServerResponse, appBytes: number | undefined, use: (body: Buffer) => Promise<T>): Promise<T> {
    if (!hasBody(raw.req.headers)) return use(NO_BODY);
    const maxBytes = Math.min(appBytes ?? this.#limits.maxBytes, this.#limits.maxBytes);
    const body = new GrowingBytes();
    let counted = 0;
    const count = (): void => {
      this.#held += body.heldBytes - counted;
      counted = body.heldBytes;
    };
    try {
      await parsed();
      return await use(this.#arrived(raw.req, maxBytes, body, count) ?? (await this.#read(raw, maxBytes, body, count)));
    } finally {
      this.#held -= counted;
    }
  }

  /** Returns a body that arrived together with its head, as most bodies do. This path avoids a timer and four listeners. */
  #arrived(req: IncomingMessage, maxBytes: number, body: GrowingBytes, count: () => void): Buffer | undefined {
    const { inFlightBytes } = this.#limits;
    const { complete, destroyed, readableLength, headers } = req;
    if (!complete || destroyed || readableLength > maxBytes || headers.expect !== undefined) return undefined;
    const bytes: Buffer | null = req.read();
    if (bytes === null) return undefined;
    body.add(bytes);
    count();
    if (this.#held > inFlightBytes) throw tooMany();
    return bytes;
  }

  #read(raw: ServerResponse, maxBytes: number, body: GrowingBytes, count: () => void): Promise<Buffer> {
    const { req } = raw;
    const { inFlightBytes, timeoutMs } = this.#limits;
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge(maxBytes));
    if (req.destroyed) return Promise.reject(endedEarly());
    // The gateway sends `100 Continue` only now, so that the caller of a rejected request sends no body (RFC 9110 §10.1.1).
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

/** Waits for the next phase of the event loop. Node calls the handler before it parses the bytes that came with the head. */
const parsed = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const tooLarge = (maxBytes: number): ServiceError =>
  new ServiceError('payload_too_large', `The body is over ${maxBytes} bytes.`);

const tooMany = (): ServiceError =>
  new ServiceError('overloaded', 'The gateway holds too many large bodies; call again.');

const endedEarly = (): ServiceError => new ServiceError('invalid_request', 'The body ended early.');

/** The 'close' event follows every error and reports it. */
const ignore = (): void => {};

/** Size of the first buffer that is allocated for a body of several pieces. */
const LEAST = 1024;

/** Collects bytes in one buffer that doubles when it is full. A body of millions of one-byte chunks costs at most three times its length. */
export class GrowingBytes {
  #room: Buffer = NO_BODY;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Size of the allocated buffer. */
  get heldBytes(): number {
    return this.#room.length;
  }

  /** Adds a piece. The first piece is kept without a copy, because most bodies are one piece. */
  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (this.#room.length === 0) {
      this.#room = piece;
    } else {
      if (length > this.#room.length) this.#grow(length);
      piece.copy(this.#room, this.#length);
    }
    this.#length = length;
  }

  bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }

  #grow(length: number): void {
    const room = Buffer.allocUnsafeSlow(Math.max(LEAST, 2 * this.#room.length, length));
    this.#room.copy(room, 0, 0, this.#length);
    this.#room = room;
  }
}
