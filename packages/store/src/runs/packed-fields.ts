// Encodes and decodes the packed fields of a run's record. src/parts/record.lua is the other side, and describes the formats.

/** The parts of a call that accept.lua joins with app, function, time and traceparent. */
export interface CallTerms {
  readonly keepMs: number;
  readonly absentMs?: number;
  readonly promised: boolean;
  readonly paced: boolean;
  readonly webhook?: unknown;
  readonly idempotency?: unknown;
}

/** Returns the terms of the field `call`. */
export function packTerms(run: CallTerms): string {
  const flags = `${run.promised ? 'p' : ''}${run.paced ? 's' : ''}${run.webhook ? 'h' : ''}${run.idempotency ? 'c' : ''}`;
  return `${run.keepMs} ${run.absentMs ?? '-'} ${flags || '-'}`;
}

export interface RecordedCall {
  readonly app: string;
  readonly fn: string;
  /** Unix ms of the store's clock. */
  readonly acceptedAt: number;
  readonly promised: boolean;
  readonly paced: boolean;
  readonly traceparent?: string;
}

/** Reads the field `call`. */
export function readCall(field: string): RecordedCall {
  const [app = '', fn = '', accepted, , , flags = '', traceparent] = field.split(' ');
  return {
    app,
    fn,
    acceptedAt: Number(accepted),
    promised: flags.includes('p'),
    paced: flags.includes('s'),
    ...(traceparent !== undefined && { traceparent }),
  };
}

/** Reads the field `attempt`. @param field undefined before the first attempt, whose number is 0 */
export function readAttempt(field: string | undefined): { number: number; startedAt?: number } {
  const [number = '0', , started = '-'] = field?.split(' ') ?? [];
  return { number: Number(number), ...(started !== '-' && { startedAt: Number(started) }) };
}

/** Reads the field `hold`: returns whether an attempt of a delivery is open at `now`, Unix ms. */
export function isHeld(field: string | undefined, now: number): boolean {
  const [, upto, lease] = field?.split(' ') ?? [];
  return Number(upto) > now && Number(upto) <= now + 2 * Number(lease);
}
