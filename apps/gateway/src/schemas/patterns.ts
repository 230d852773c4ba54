// Contract 1, "Parameters and types": patterns of schemas, as expressions that take linear time.
// docs/decisions/0042-ajv-checks-parameters.md
import { RE2JS } from 're2js';

const LONGEST_PATTERN = 512;
/** RE2JS compiles a pattern of this size in about 10 ms. A pattern of 500 characters could have the size 40,000. */
const LARGEST_SIZE = 2000;
/** A repetition, such as `{1,64}`, and the end of a group before it. */
const REPETITIONS = /(\)?)\{(\d+)(?:,(\d*))?\}/g;

/** Syntax with another meaning in Python's `re`, in pydantic's expressions or in RE2: the function's process judges such a pattern. */
const FOREIGN = /&&|--|~~|\[\[|\{,|\\[ABGKQRXZ]/;
/** Syntax that reads text beyond ASCII differently in these languages. */
const READS_TEXT = /\\[dDwWsSb]|\(\?/;
const ASCII = /^[\p{ASCII}]*$/u;

/** An expression that Ajv calls instead of a `RegExp`. Ajv uses the text of `toString` as a key. */
export interface Pattern {
  test(text: string): boolean;
  toString(): string;
}

/** The pattern, with its size: the most steps for one character. */
export interface SizedPattern extends Pattern {
  readonly size: number;
}

/** Compiles a pattern. Returns undefined if only the function's process can judge the pattern. */
export function compiledPattern(pattern: string): SizedPattern | undefined {
  if (pattern.length > LONGEST_PATTERN || FOREIGN.test(pattern) || estimate(pattern) > LARGEST_SIZE) return undefined;
  let expression: RE2JS;
  try {
    expression = RE2JS.compile(pattern);
  } catch {
    return undefined;
  }
  const readsText = READS_TEXT.test(pattern);
  return {
    size: expression.programSize(),
    // In Python, `$` also matches before a final newline.
    test: (text) => expression.test(text) || text.endsWith('\n') || (readsText && !ASCII.test(text)),
    toString: () => pattern,
  };
}

/** Returns about the size of a pattern: repeated characters, times the repetitions of groups. */
function estimate(pattern: string): number {
  let [characters, groups] = [pattern.length, 1];
  for (const [, group, least, most] of pattern.matchAll(REPETITIONS)) {
    const times = Number(most || least);
    if (group) groups *= Math.max(1, times);
    else characters += times;
  }
  return characters * groups;
}
