// webhooks.md "Semantics": the envelope's bytes as they are kept before the first attempt is sent. A result that stands in the run's record already
// is not kept a second time.
import { type EndState, envelope } from '@inference-proxy/contracts';

/** What no JSON text holds. */
const MARK = '\0';

/**
 * What stands before, between and after run id, state, result, run time and end in the envelope of a run that returned a value: the store keeps
 * that one itself as the first attempt begins (lua/delivery-begin.lua).
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
 * `<where the result belongs>:<the bytes without it>`, or `-:<all of them>` where the result is not among them as it is stored.
 *
 * @param bytes the envelope
 * @param result as it stands in the run's record, where it does
 */
export function keptEnvelope(bytes: Buffer, result: Buffer | undefined): Buffer {
  const at = result === undefined ? -1 : bytes.indexOf(result);
  if (at === -1 || result === undefined) return Buffer.concat([Buffer.from('-:'), bytes]);
  return Buffer.concat([Buffer.from(`${at}:`), bytes.subarray(0, at), bytes.subarray(at + result.length)]);
}

/**
 * The envelope again.
 *
 * @param kept what `keptEnvelope` returned
 * @param result the same as then
 */
export function envelopeFrom(kept: Buffer, result: Buffer): Buffer {
  const colon = kept.indexOf(COLON);
  const around = kept.subarray(colon + 1);
  const at = Number(kept.toString('latin1', 0, colon));
  return Number.isNaN(at) ? around : Buffer.concat([around.subarray(0, at), result, around.subarray(at)]);
}
