// RFC 7240: what a caller prefers of the way its call is answered. Pure.

export interface Preferences {
  /** `respond-async` (RFC 7240 §4.1). */
  readonly respondAsync: boolean;
  /** `wait`, in seconds (RFC 7240 §4.3). */
  readonly waitS?: number;
}

/** Elements of a list, commas inside quotes left alone. */
const ELEMENTS = /(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g;
/** Name and value of one; its parameters, which none of ours has, are not looked at. */
const ELEMENT = /^\s*([^\s=;]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*)))?\s*(?:;|$)/;
/** Nine digits are over thirty years. */
const DELTA_SECONDS = /^\d{1,9}$/;

/** What is ours to follow. */
const OURS = new Set(['respond-async', 'wait']);

/** What of a `Prefer` header is for somebody else; empty where nothing is. */
export function preferencesOfOthers(header: string): string {
  return [...header.matchAll(ELEMENTS)]
    .map(([element]) => element.trim())
    .filter((element) => element !== '' && !OURS.has(ELEMENT.exec(element)?.[1]?.toLowerCase() ?? ''))
    .join(', ');
}

/**
 * Reads a `Prefer` header. A preference that is unknown, or whose value makes no sense, counts as not given (§2); of several
 * of one name the first counts.
 *
 * @param header all `Prefer` lines of the request, joined by commas as Node does
 */
export function preferences(header: string): Preferences {
  const values = new Map<string, string>();
  for (const [element] of header.matchAll(ELEMENTS)) {
    const [, name = '', quoted, plain = ''] = ELEMENT.exec(element) ?? [];
    const known = name.toLowerCase();
    if (!values.has(known)) values.set(known, quoted?.replace(/\\(.)/g, '$1') ?? plain);
  }
  const wait = values.get('wait') ?? '';
  return {
    respondAsync: values.get('respond-async') === '',
    ...(DELTA_SECONDS.test(wait) && { waitS: Number(wait) }),
  };
}
