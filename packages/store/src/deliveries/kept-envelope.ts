// Contract 4, "Content": the stored form of an envelope, written before the first attempt is sent. A result that the run's record holds
// already is not stored a second time.
import { type EndState, envelope } from '@inference-proxy/contracts';

/** A character that no JSON text contains. */
const MARK = '\0';

/**
 * The envelope's text before, between and after run id, state, result, run time and end, for a run that returned a value. The store itself
 * builds this envelope at the first attempt (delivery-begin.lua).
 */
export const ENVELOPE_PIECES: readonly string[] = envelope(MARK, {
  state: MARK as EndState,
  items: 0,
  streamed: false,
  runTimeMs: MARK,
  endedAt: 0,
  result: Buffer.from(MARK),
})
  .toString()
  .replace(new Date(0).toISOString(), MARK)
  .split(MARK);

const COLON = 0x3a;

/**
 * Returns `<place of the result>:<the bytes without the result>`, or `-:<all bytes>` if the bytes do not contain the result in its stored form.
 *
 * @param bytes the envelope
 * @param result the result in the run's record, if the record has one
 */
export function keptEnvelope(bytes: Buffer, result: Buffer | undefined): Buffer {
  const at = result === undefined ? -1 : bytes.indexOf(result);
  if (at === -1 || result === undefined) return Buffer.concat([Buffer.from('-:'), bytes]);
  return Buffer.concat([Buffer.from(`${at}:`), bytes.subarray(0, at), bytes.subarray(at + result.length)]);
}

/**
 * Returns the envelope from its stored form.
 *
 * @param kept the return value of `keptEnvelope`
 * @param result the same result as at that call
 */
export function envelopeFrom(kept: Buffer, result: Buffer): Buffer {
  const colon = kept.indexOf(COLON);
  const around = kept.subarray(colon + 1);
  const at = Number(kept.toString('latin1', 0, colon));
  return Number.isNaN(at) ? around : Buffer.concat([around.subarray(0, at), result, around.subarray(at)]);
}
