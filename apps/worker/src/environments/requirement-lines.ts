// Contract 7, "Dependencies": the lines of a requirements file, as pip reads them.
// Source: pip.pypa.io/en/stable/reference/requirements-file-format

/** A line of a requirements file. Paths are as written. */
export type Requirement =
  /** `-r` or `-c`: another file. */
  | { readonly kind: 'file'; readonly constraints: boolean; readonly path: string }
  /** A package or a folder of packages beside the app's code. `text` is the whole line. */
  | { readonly kind: 'local'; readonly path: string; readonly text: string }
  /** A package of an index or of an address, or an option. */
  | { readonly kind: 'plain'; readonly text: string };

const ARCHIVE = /\.(whl|zip|tar\.gz|tar\.bz2|tgz)$/;
/** Options whose value may be a path. */
const FILES = ['-r', '--requirement', '-c', '--constraint'];
const PLACES = ['-e', '--editable', '-f', '--find-links'];

/** Returns the lines without comments and empty lines. A backslash at the end of a line continues it. */
export function requirementLines(text: string): Requirement[] {
  return text
    .replace(/^\uFEFF/, '')
    .replace(/\\\r?\n/g, '')
    .split(/\r?\n/)
    .map((line) => withoutComment(line).trim())
    .filter((line) => line !== '')
    .map(requirement);
}

/** A comment begins at the start of the line or after a space. */
function withoutComment(line: string): string {
  for (let at = line.indexOf('#'); at !== -1; at = line.indexOf('#', at + 1))
    if (at === 0 || /\s/.test(line[at - 1] ?? '')) return line.slice(0, at);
  return line;
}

function requirement(text: string): Requirement {
  if (text.startsWith('-')) {
    const { name, value } = option(text);
    if (FILES.includes(name)) return { kind: 'file', constraints: name.includes('c'), path: value };
    if (PLACES.includes(name) && !isAddress(value)) return { kind: 'local', path: pathIn(value), text };
    return isFileUrl(value) ? { kind: 'local', path: value, text } : { kind: 'plain', text };
  }
  const at = text.indexOf(' @ ');
  const place = at === -1 ? text : text.slice(at + 3).trim();
  if (at !== -1 ? !isAddress(place) : isPath(place)) return { kind: 'local', path: pathIn(place), text };
  return { kind: 'plain', text };
}

/** Splits `--name value`, `--name=value` and `-nvalue`. */
function option(text: string): { name: string; value: string } {
  if (!text.startsWith('--')) return { name: text.slice(0, 2), value: unquoted(text.slice(2).replace(/^\s*=?/, '')) };
  const end = text.search(/[\s=]/);
  return end === -1 ? { name: text, value: '' } : { name: text.slice(0, end), value: unquoted(text.slice(end + 1)) };
}

const unquoted = (text: string): string => text.trim().replace(/^(["'])(.*)\1$/, '$2');

const isFileUrl = (text: string): boolean => /^(\w+\+)?file:/i.test(text);

/** An address of another machine. A `file:` URL is a path of this machine. */
const isAddress = (text: string): boolean => text.includes('://') && !isFileUrl(text);

/** Returns whether pip reads a requirement as a path: it has a separator or begins with a dot, or is an archive. */
function isPath(text: string): boolean {
  if (isFileUrl(text)) return true;
  if (isAddress(text)) return false;
  const word = withoutMarker(text);
  return word.startsWith('.') || word.includes('/') || word.includes('\\') || ARCHIVE.test(word);
}

/** Returns the path of `./lib[extra] ; marker`. */
function pathIn(text: string): string {
  const word = unquoted(withoutMarker(text));
  return word.endsWith(']') && word.includes('[') ? word.slice(0, word.lastIndexOf('[')) : word;
}

/** Removes what may follow a path: `; marker` or ` --option`. */
const withoutMarker = (text: string): string => (text.split(';', 1)[0] ?? '').split(' --', 1)[0]?.trimEnd() ?? '';
