// RFC 7240: the `Prefer` header. Pure. Parses by hand in linear time, because a header may hold 16 KiB of any characters.

import { wholeSeconds } from '../http/values.ts';

export interface Preferences {
  /** `respond-async` (RFC 7240 §4.1). */
  readonly respondAsync: boolean;
  /** `wait`, in seconds (RFC 7240 §4.3). */
  readonly waitS?: number;
}

const SPACE = /\s/;

/** The preferences that this service follows. */
const SUPPORTED = new Set(['respond-async', 'wait']);

/** Returns the preferences of a `Prefer` header that this service does not follow. Returns an empty text if there are none. */
export function preferencesOfOthers(header: string): string {
  return split(header, ',')
    .map((element) => element.trim())
    .filter((element) => element !== '' && !SUPPORTED.has(preferenceOf(element).name))
    .join(', ');
}

/**
 * Reads a `Prefer` header. A preference that is unknown or has a malformed value counts as absent (§2).
 * If a preference is repeated, its first value counts.
 *
 * @param header all `Prefer` lines of the request, joined by commas as Node does
 */
export function preferences(header: string): Preferences {
  const values = new Map<string, string>();
  for (const element of split(header, ',')) {
    const { name, value } = preferenceOf(element);
    if (value !== undefined && !values.has(name)) values.set(name, value);
  }
  const waitS = wholeSeconds(values.get('wait') ?? '');
  return {
    respondAsync: values.get('respond-async') === '',
    ...(waitS !== undefined && { waitS }),
  };
}

/** The parts of a text between separators. A separator inside a quoted string does not count; an open quote ends with the text. */
function split(text: string, separator: string): string[] {
  const parts: string[] = [];
  let from = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') isQuoted = !isQuoted;
    else if (character === '\\' && isQuoted) at += 1;
    else if (character === separator && !isQuoted) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  parts.push(text.slice(from));
  return parts;
}

/** Returns name (in lower case) and value of an element; no value if the value is malformed. Parameters are ignored. */
function preferenceOf(element: string): { readonly name: string; readonly value: string | undefined } {
  const [preference = ''] = split(element, ';');
  const mark = preference.indexOf('=');
  const name = (mark === -1 ? preference : preference.slice(0, mark)).trim().toLowerCase();
  return { name, value: mark === -1 ? '' : wordIn(preference.slice(mark + 1).trim()) };
}

/** Decodes a token or a quoted string (RFC 9110 §5.6.4). Returns undefined for any other text. */
function wordIn(text: string): string | undefined {
  if (!text.startsWith('"')) return SPACE.test(text) ? undefined : text;
  let word = '';
  for (let at = 1; at < text.length; at++) {
    if (text[at] === '"') return at === text.length - 1 ? word : undefined;
    if (text[at] === '\\') at += 1;
    word += text[at] ?? '';
  }
  return undefined;
}
