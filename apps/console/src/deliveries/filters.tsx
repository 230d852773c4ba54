// The filters of the list of deliveries, in the address.
import type { DeliveryFilters } from '../api/api.ts';
import { route, setFilters } from '../shell/route.ts';

const STATES = ['pending', 'delivered', 'failed'] as const;
const SPANS: readonly (readonly [value: string, label: string, seconds: number])[] = [
  ['1h', 'last hour', 3_600],
  ['24h', 'last 24 hours', 86_400],
];

const inAddress = (): Readonly<Record<string, string | undefined>> => Object.fromEntries(route.value.query);

/** Returns the filters of a request. */
export function deliveryFilters(): DeliveryFilters {
  const { status, host, span } = inAddress();
  const [, , seconds] = SPANS.find(([value]) => value === span) ?? [];
  return {
    ...(status && { status: status as (typeof STATES)[number] }),
    ...(host && { host }),
    ...(seconds !== undefined && { since: new Date(Date.now() - seconds * 1_000).toISOString() }),
  };
}

export function DeliveryFilterForm() {
  const { status = '', host = '', span = '' } = inAddress();
  const set = (name: string, value: string): void => setFilters({ ...inAddress(), [name]: value });
  return (
    <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <label>
        State
        <select value={status} onChange={(event) => set('status', event.currentTarget.value)}>
          <option value="">all states</option>
          {STATES.map((state) => (
            <option key={state}>{state}</option>
          ))}
        </select>
      </label>
      <label>
        Receiver
        <input
          type="search"
          placeholder="receiver.example.com"
          value={host}
          onChange={(event) => set('host', event.currentTarget.value.trim())}
        />
      </label>
      <label>
        Created
        <select value={span} onChange={(event) => set('span', event.currentTarget.value)}>
          <option value="">any time</option>
          {SPANS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
    </form>
  );
}
