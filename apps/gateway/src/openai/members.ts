// RFC 8259: selects members of a JSON object without changing their bytes. Numbers past 2^53 and `1.0` stay as the caller wrote them.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN = new Set([0x7b, 0x5b]);
const CLOSE = new Set([0x7d, 0x5d]);

/**
 * Returns the object without the members that `keep` rejects. Returns the object itself if `keep` accepts all members.
 *
 * @param object the bytes of a valid JSON object
 */
export function keepMembers(object: Buffer, keep: (name: string) => boolean): Buffer {
  const members = membersOf(object);
  const kept = members.filter(({ name }) => keep(name));
  if (kept.length === members.length) return object;
  return Buffer.concat([
    Buffer.from('{'),
    ...kept.flatMap(({ from, to }, at) => [Buffer.from(at === 0 ? '' : ','), object.subarray(from, to)]),
    Buffer.from('}'),
  ]);
}

interface Member {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Finds the members by bytes. In UTF-8, the bytes of another character never equal a delimiter of JSON. */
function membersOf(object: Buffer): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let from = 0;
  let name: string | undefined;
  const close = (to: number): void => {
    if (name !== undefined) members.push({ name, from, to });
    name = undefined;
  };
  for (let at = 0; at < object.length; at++) {
    const byte = object[at] as number;
    if (byte === QUOTE) {
      const end = endOfString(object, at);
      if (depth === 1 && name === undefined) {
        name = JSON.parse(object.toString('utf8', at, end)) as string;
        from = at;
      }
      at = end - 1;
    } else if (OPEN.has(byte)) {
      depth++;
    } else if (CLOSE.has(byte)) {
      if (depth === 1) close(at);
      depth--;
    } else if (byte === COMMA && depth === 1) {
      close(at);
    }
  }
  return members;
}

/** Returns the position after the closing quote. */
function endOfString(json: Buffer, start: number): number {
  let at = start + 1;
  while (json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}
