// Contract 7, "Deploy a version": the body of an upload, chunk by chunk, within a size and times.
import type { ServerResponse } from 'node:http';
import { ServiceError } from '@inference-proxy/contracts';

export interface UploadLimits {
  /** `MAX_BUNDLE_BYTES`. */
  readonly maxBytes: number;
  /** Longest wait for the next bytes, ms. A slow caller is not cut off while bytes arrive. */
  readonly idleMs: number;
}

/** Longest time of an upload, ms. The largest bundle then needs 75 KB/s. Node's server ends the request at this time too. */
export const LONGEST_UPLOAD_MS = 3_600_000;

/**
 * Yields the chunks of the request's body.
 *
 * The request is not destroyed after an error, because the caller must be able to read the answer.
 *
 * @throws ServiceError `payload_too_large`, `invalid_request`
 */
export async function* bundleBody(raw: ServerResponse, { maxBytes, idleMs }: UploadLimits): AsyncGenerator<Buffer> {
  const { req } = raw;
  const tooLarge = () =>
    new ServiceError(
      'payload_too_large',
      `The bundle is over ${maxBytes} bytes, the limit of this service (MAX_BUNDLE_BYTES).`,
    );
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
  if (req.destroyed) throw endedEarly();
  if (req.headers.expect !== undefined) raw.writeContinue();
  const chunks: Buffer[] = [];
  let size = 0;
  let isEnded = false;
  let error: ServiceError | undefined;
  let wake = (): void => {};
  const fail = (why: ServiceError): void => {
    error ??= why;
    wake();
  };
  const onData = (chunk: Buffer): void => {
    req.pause();
    size += chunk.length;
    chunks.push(chunk);
    wake();
  };
  const onEnd = (): void => {
    isEnded = true;
    wake();
  };
  const onClose = (): void => fail(endedEarly());
  const longest = setTimeout(() => fail(tooLong()), LONGEST_UPLOAD_MS);
  // The 'close' event follows every error of the request.
  req
    .on('data', onData)
    .on('end', onEnd)
    .on('close', onClose)
    .on('error', () => {});
  try {
    for (;;) {
      for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) {
        if (size > maxBytes) throw tooLarge();
        yield chunk;
      }
      if (isEnded) return;
      if (error !== undefined) throw error;
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      req.resume();
      const idle = setTimeout(() => fail(late(idleMs)), idleMs);
      await promise;
      clearTimeout(idle);
    }
  } finally {
    clearTimeout(longest);
    req.off('data', onData).off('end', onEnd).off('close', onClose).pause();
  }
}

const endedEarly = (): ServiceError =>
  new ServiceError('invalid_request', 'The upload ended before the whole bundle had arrived; send it again.');
const late = (idleMs: number): ServiceError =>
  new ServiceError('invalid_request', `No byte of the bundle arrived for ${idleMs / 1000} s; send it again.`);
const tooLong = (): ServiceError =>
  new ServiceError('invalid_request', `The bundle did not arrive within ${LONGEST_UPLOAD_MS / 1000} s; send it again.`);
