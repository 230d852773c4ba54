// Encodes and decodes the facts of a run's accept, which are one field of its record. lua/shared/record describes the format.
import type { NewRun } from './accept.ts';

/** Returns `<retention ms> <absent ms or -> <flags>`. These terms stand between the time of the accept and the traceparent. */
export function termsOf(run: NewRun): string {
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
