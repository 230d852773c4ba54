// The body of a call from the values of a form. Pure.

export type Values = Readonly<Record<string, unknown>>;

const isFiles = (value: unknown): value is readonly File[] =>
  Array.isArray(value) && value.length > 0 && value.every((each) => each instanceof File);

/** Returns whether the values contain files. Files need a form instead of JSON. */
export const hasFiles = (values: Values): boolean =>
  Object.values(values).some((value) => value instanceof File || isFiles(value));

/** Returns JSON text, or a form if there are files. Absent values are left out. Contract 1, "Body". */
export function bodyOf(values: Values): string | FormData {
  if (!hasFiles(values)) return JSON.stringify(values);
  const form = new FormData();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    if (value instanceof File) form.append(name, value);
    else if (isFiles(value)) for (const file of value) form.append(name, file);
    else form.append(name, typeof value === 'string' ? value : JSON.stringify(value));
  }
  return form;
}

interface Detail {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
}

/** Returns the messages of a 422 answer by place, such as `items.0.name`. The first part of a place is `body`. */
export const errorsByPlace = (details: readonly Detail[]): ReadonlyMap<string, string> =>
  new Map(details.map(({ loc, msg }) => [loc.slice(1).join('.'), msg]));
