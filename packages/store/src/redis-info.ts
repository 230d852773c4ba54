// Parses the answer to Redis' `INFO`: one `name:value` per line. Sections begin with `#`.

/** Returns the fields of an answer to `INFO`, by name. */
export function redisInfo(answer: string): ReadonlyMap<string, string> {
  const lines = answer.split('\r\n').map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1)];
  });
  return new Map(lines);
}
