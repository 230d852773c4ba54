// Contract 7, "Deploy a version": the body of an upload, chunk by chunk, within a size and a time.
import type { ServerResponse } from 'node:http';
import { ServiceError } from '@inference-proxy/contracts';

export interface UploadLimits {
  /** `MAX_BUNDLE_BYTES`. */
  readonly maxBytes: number;
  /** Time in which a bundle must arrive, ms. */
  readonly timeoutMs: number;
}

/**
 * Yields the chunks of the request's body.
 *
 * The request is not destroyed after an error, because the caller must be able to read the answer.
 *
 * @throws ServiceError `payload_too_large`, `invalid_request`
 */
export async function* bundleBody(raw: ServerResponse, { maxBytes, timeoutMs }: UploadLimits): AsyncGenerator<Buffer> {
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
  const timer = setTimeout(() => fail(late(timeoutMs)), timeoutMs);
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
      await promise;
    }
  } finally {
    clearTimeout(timer);
    req.off('data', onData).off('end', onEnd).off('close', onClose).pause();
  }
}

const endedEarly = (): ServiceError =>
  new ServiceError('invalid_request', 'The upload ended before the whole bundle had arrived; send it again.');
const late = (timeoutMs: number): ServiceError =>
  new ServiceError('invalid_request', `The bundle did not arrive within ${timeoutMs / 1000} s; send it again.`);
