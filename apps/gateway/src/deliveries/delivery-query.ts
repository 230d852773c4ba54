// Contract 5, "Deliveries": the filters of `GET /deliveries` and `POST /deliveries/redeliver`.
import type { DeliveryFilter, DeliveryState } from '@inference-proxy/store';
import { z } from 'zod';
import { readQuery } from '../http/query.ts';
import type { Query } from '../http/request-head.ts';
import { filterOf, filterWord, paging, time } from '../http/values.ts';

const STATES = ['pending', 'delivered', 'failed'] as const satisfies readonly DeliveryState[];

const deliveryQuery = z.object({
  status: filterOf(STATES),
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
export function deliveryQueryOf(query: Query, unknown: 'ignored' | 'refused'): DeliveryQuery {
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
