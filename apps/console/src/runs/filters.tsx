// The filters of the list of runs. They are in the address, so a filtered list can be shared and reloaded.
import type { App, RunFilters } from '../api/api.ts';
import { route, setFilters } from '../shell/route.ts';

const STATES = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'expired'] as const;
const WEBHOOKS = ['any', 'none', 'waiting', 'pending', 'delivered', 'failed'] as const;

/** Spans of time up to now, in seconds, by the word in the address. */
const SPANS: Readonly<Record<string, readonly [label: string, seconds: number]>> = {
  '15m': ['last 15 minutes', 900],
  '1h': ['last hour', 3_600],
  '6h': ['last 6 hours', 21_600],
  '24h': ['last 24 hours', 86_400],
};
const OWN_SPAN = 'own';

type Filters = Readonly<Record<string, string | undefined>>;

/** Returns the filters in the address. */
export const filtersInAddress = (): Filters => Object.fromEntries(route.value.query);

/** Returns the filters of a request. A span such as "last hour" begins before the present moment. */
export function requestFilters({ span = '', since, until, ...rest }: Filters): RunFilters {
  const seconds = SPANS[span]?.[1];
  if (seconds !== undefined)
    return { ...rest, since: new Date(Date.now() - seconds * 1_000).toISOString() } as RunFilters;
  return { ...rest, ...(since && { since: iso(since) }), ...(until && { until: iso(until) }) } as RunFilters;
}

/** @param local the value of a field of the type `datetime-local` */
function iso(local: string): string | undefined {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  readonly all: string;
  readonly options: readonly (readonly [value: string, label: string])[];
}

const set = (name: string, value: string): void => setFilters({ ...filtersInAddress(), [name]: value });

function Choice({ name, label, all, options }: ChoiceProps) {
  const value = filtersInAddress()[name] ?? '';
  const known = value === '' || options.some(([each]) => each === value);
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => set(name, event.currentTarget.value)}>
        <option value="">{all}</option>
        {!known && <option value={value}>{value}</option>}
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

const same = (values: readonly string[]): (readonly [string, string])[] =>
  values.map((value) => [value, value.replaceAll('_', ' ')] as const);

function Moment({ name, label }: { readonly name: string; readonly label: string }) {
  return (
    <label>
      {label}
      <input
        type="datetime-local"
        value={filtersInAddress()[name] ?? ''}
        onChange={(event) => set(name, event.currentTarget.value)}
      />
    </label>
  );
}

export function RunFilterForm({ apps }: { readonly apps: readonly App[] }) {
  const { app, span } = filtersInAddress();
  const called = apps.filter(({ name }) => app === undefined || name === app).flatMap(({ functions }) => functions);
  const functions = [...new Set(called.map(({ name }) => name))].sort();
  const spans = Object.entries(SPANS).map(([value, [label]]) => [value, label] as const);
  return (
    <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Choice name="app" label="App" all="all apps" options={same(apps.map(({ name }) => name))} />
      <Choice name="function" label="Function" all="all functions" options={same(functions)} />
      <Choice name="status" label="State" all="all states" options={same(STATES)} />
      <Choice name="webhook" label="Webhook" all="with or without" options={same(WEBHOOKS)} />
      <Choice name="span" label="Accepted" all="any time" options={[...spans, [OWN_SPAN, 'between…'] as const]} />
      {span === OWN_SPAN && <Moment name="since" label="From" />}
      {span === OWN_SPAN && <Moment name="until" label="To" />}
      {route.value.query.size > 0 && (
        <button type="button" onClick={() => setFilters({})}>
          Clear
        </button>
      )}
    </form>
  );
}
