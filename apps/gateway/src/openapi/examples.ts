// Contract 6: examples of a function's parameters, from the app's manifest or from the function's docstring.
import type { FunctionSpec } from '@inference-proxy/contracts';

const MOST_EXAMPLES = 10;
const HEADINGS = new Set(['example', 'example:', 'examples', 'examples:']);

/**
 * Returns the examples of a function: those of the manifest (`[examples]`), else those of the docstring.
 * An example of a docstring is a JSON object on a line of its own, below a line `Example:` or `Examples:`.
 */
export function examplesOf({ examples, schema, doc }: FunctionSpec): readonly object[] {
  if (examples !== undefined && examples.length > 0) return examples.slice(0, MOST_EXAMPLES);
  const lines = (schema?.description ?? doc ?? '').split('\n');
  const start = lines.findIndex((line) => HEADINGS.has(line.trim().toLowerCase()));
  return start === -1
    ? []
    : lines
        .slice(start + 1)
        .flatMap(objectIn)
        .slice(0, MOST_EXAMPLES);
}

function objectIn(line: string): object[] {
  const text = line.trim();
  if (!text.startsWith('{')) return [];
  try {
    return [JSON.parse(text) as object];
  } catch {
    return [];
  }
}
