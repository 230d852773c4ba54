// docs/apps/web-servers.md, "Ports": replaces a fixed port in a server's command, if the command names the port as the port to listen on.

/** The text in front of a port. An option and its value may be two words of the command. */
const FORMS = ['--port ', '--port=', '-p '] as const;
const OPTIONS = ['--port', '-p'];

/**
 * Returns the command with `port` replaced by `instead`, or undefined if the command does not contain the port in a known form.
 * The forms are `--port 8000`, `--port=8000`, `-p 8000`, `host:8000` and `{port}`, also inside one word (`sh -c "serve --port 8000"`).
 */
export function replacePort(
  entrypoint: readonly string[],
  port: number,
  instead: number,
): readonly string[] | undefined {
  let found = entrypoint.some((word) => word.includes('{port}'));
  const replaced = entrypoint.map((word, at) => {
    const before = OPTIONS.includes(entrypoint[at - 1] ?? '') ? `${entrypoint[at - 1]} ` : '';
    const changed = replaceIn(word, before, String(port), String(instead));
    found ||= changed !== word;
    return changed;
  });
  return found ? replaced : undefined;
}

/** @param before the text in front of the word, which decides the meaning of the word's start */
function replaceIn(word: string, before: string, port: string, instead: string): string {
  let text = '';
  let from = 0;
  for (let at = word.indexOf(port); at !== -1; at = word.indexOf(port, at + port.length)) {
    const end = at + port.length;
    if (isWordCharacter(word[end]) || !meansPort(before + word.slice(0, at))) continue;
    text += word.slice(from, at) + instead;
    from = end;
  }
  return text + word.slice(from);
}

/** Whether a number that follows this text is the port to listen on. */
function meansPort(text: string): boolean {
  const trimmed = text.trimEnd();
  const before = trimmed.length < text.length ? `${trimmed} ` : text;
  const form = FORMS.find((one) => before.endsWith(one));
  if (form !== undefined) return !isPartOfName(before.at(-form.length - 1));
  // A host may be empty: `--bind :8000`.
  return before.endsWith(':') && (isHostEnd(before.at(-2)) || !isPartOfName(before.at(-2)));
}

const isPartOfName = (character: string | undefined): boolean => character !== undefined && /[^\s='"]/.test(character);

const isWordCharacter = (character: string | undefined): boolean =>
  character !== undefined && /[A-Za-z0-9_.]/.test(character);

/** The last character of a host: a name, an address, `[::]` or `*`. */
const isHostEnd = (character: string | undefined): boolean =>
  character !== undefined && /[A-Za-z0-9_\]*-]/.test(character);
