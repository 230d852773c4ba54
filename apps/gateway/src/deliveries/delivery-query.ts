// Contract 5, "Deliveries": the filters of `GET /deliveries` and `POST /deliveries/redeliver`.
import type { DeliveryFilter, DeliveryState } from '@inference-proxy/store';
import { z } from 'zod';
import { filterWord, paging, readQuery } from '../http/query.ts';

const STATES = ['pending', 'delivered', 'failed'] as const satisfies readonly DeliveryState[];
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/**
 * Returns Unix ms. `Date.parse` accepts the 31st of any month as a day of the next month.
 * Such a date would redeliver other deliveries than the caller intended.
 */
function timeOf(written: string): number {
  const day = written.slice(0, 10);
  const read = new Date(day);
  return !Number.isNaN(read.getTime()) && read.toISOString().startsWith(day) ? Date.parse(written) : Number.NaN;
}

/** A time in the form of RFC 3339, or Unix seconds. A `+` that was not encoded has become a space. */
const time = z
  .string()
  .transform((text, context) => {
    const written = text.replace(' ', '+');
    const ms = /^\d{1,11}$/.test(text) ? Number(text) * 1000 : RFC_3339.test(written) ? timeOf(written) : Number.NaN;
    if (!Number.isNaN(ms)) return ms;
    context.issues.push({ code: 'custom', message: 'must be a time such as 2026-11-21T04:00:00Z', input: text });
    return z.NEVER;
  })
  .optional();

const deliveryQuery = z.object({
  status: z.enum(STATES, `must be one of ${STATES.join(', ')}`).optional(),
  host: filterWord,
  since: time,
  until: time,
  ...paging,
});

export interface DeliveryQuery {
  readonly filter: DeliveryFilter;
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** Reads the filters of a query. @throws ServiceError `invalid_request` that names the wrong parameter */
export function deliveryQueryOf(query: string, unknown: 'ignored' | 'refused'): DeliveryQuery {
  const { status: state, host, since, until, limit, cursor } = readQuery(deliveryQuery, query, unknown);
  return {
    filter: {
      ...(state !== undefined && { state }),
      ...(host !== undefined && { host }),
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until }),
    },
    limit,
    cursor,
  };
}
