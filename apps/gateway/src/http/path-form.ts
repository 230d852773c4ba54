// Contract 2: forms of paths, such as `/v4/*/runs/*`. A `*` stands for the characters of one segment, at least one.

/** Returns a function that finds out whether a request's target (path and query) has one of these forms. */
export function pathForms(...forms: readonly string[]): (target: string) => boolean {
  const all = forms.map((form) => form.split('/'));
  return (target) => {
    const segments = target.split('?', 1).join('').split('/');
    return all.some((form) => form.length === segments.length && form.every((part, at) => fits(part, segments[at])));
  };
}

/** @param part a segment's text, `*`, or `*` with an ending, such as `*.json` */
const fits = (part: string, segment = ''): boolean =>
  part.startsWith('*') ? segment.length >= part.length && segment.endsWith(part.slice(1)) : part === segment;
