// The views of the console and their addresses. Addresses are fragments, so the gateway serves one page and never sees them.
import { computed, signal } from '@preact/signals';

export interface Route {
  readonly project: string | undefined;
  readonly view: string;
  /** The names after the view, such as a run's id. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

const fragment = signal(location.hash);
addEventListener('hashchange', () => {
  fragment.value = location.hash;
});

/** Reads the address again, after a change that fires no event. */
export function readAddress(): void {
  fragment.value = location.hash;
}

function parsed(text: string): Route {
  const [path = '', query = ''] = text.replace(/^#\/?/, '').split('?');
  const [project, view = 'overview', ...rest] = path.split('/').filter(Boolean).map(decoded);
  return { project, view, rest, query: new URLSearchParams(query) };
}

/** A person may type any address, also one with a damaged escape. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

export const route = computed(() => parsed(fragment.value));

/** Returns the address of a view. Filters without a value are left out. */
export function hrefOf(
  project: string,
  path: readonly string[] = [],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const filters = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const text = new URLSearchParams(filters).toString();
  return `#/${[project, ...path].map(encodeURIComponent).join('/')}${text && `?${text}`}`;
}

export function goTo(href: string): void {
  location.hash = href;
}

/** Changes the filters of the present view. The history gets no entry for each key press. */
export function setFilters(query: Readonly<Record<string, string | undefined>>): void {
  const { project = '', view, rest } = route.peek();
  history.replaceState(null, '', hrefOf(project, [view, ...rest], query));
  readAddress();
}
