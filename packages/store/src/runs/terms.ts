// What was agreed at a run's accept, as one field of its record; the scripts' words for it are in lua/shared/record.
import type { NewRun } from './accept.ts';

/** `<retention ms> <absent ms or -> <flags> <traceparent>`, the last where there is one. */
export function termsOf(run: NewRun): string {
  const flags = `${run.promised ? 'p' : ''}${run.paced ? 's' : ''}${run.webhook ? 'h' : ''}${run.idempotency ? 'c' : ''}`;
  const trace = run.traceparent === undefined ? '' : ` ${run.traceparent}`;
  return `${run.keepMs} ${run.absentMs ?? '-'} ${flags || '-'}${trace}`;
}

/** What a worker must know of them. */
export interface WorkerTerms {
  readonly promised: boolean;
  readonly paced: boolean;
  readonly traceparent?: string;
}

export function readTerms(terms: string): WorkerTerms {
  const [, , flags = '', traceparent] = terms.split(' ');
  return { promised: flags.includes('p'), paced: flags.includes('s'), ...(traceparent && { traceparent }) };
}
