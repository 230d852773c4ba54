// Contract 5, "Deliveries": the receivers of webhooks with trouble, and the number of deliveries that match a filter.
import type {
  CountDeliveriesData,
  CountDeliveriesResponses,
  ListReceiversData,
  ListReceiversResponses,
} from '../../generated/api/types.gen.ts';
import type { DeliveryFilters } from './api.ts';
import { get } from './request.ts';

export type Receiver = ListReceiversResponses[200]['receivers'][number];

/** Returns the receivers with an open circuit, parked deliveries or open attempts. */
export async function listReceivers(project: string, signal?: AbortSignal): Promise<readonly Receiver[]> {
  const path = { project };
  const url = '/v4/{project}/deliveries/receivers';
  return (await get<ListReceiversData, ListReceiversResponses[200]>(url, { path, signal })).receivers;
}

/** Returns the number of deliveries that match a filter. One request examines a part of many deliveries. */
export async function countDeliveries(project: string, filters: DeliveryFilters): Promise<number> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const query = { ...filters, ...(cursor !== undefined && { cursor }) };
    const url = '/v4/{project}/deliveries/count';
    const part = await get<CountDeliveriesData, CountDeliveriesResponses[200]>(url, { path: { project }, query });
    count += part.count;
    cursor = part.cursor;
  } while (cursor !== undefined);
  return count;
}
