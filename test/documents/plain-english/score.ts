// CONTRIBUTING.md, "Plain English": how hard one sentence is to read. Pure.

export interface Score {
  /** 0 is plain; a sentence of {@link HARD} or more needs a rewrite. */
  readonly points: number;
  /** The rules that the sentence breaks, as text for its author. */
  readonly reasons: readonly string[];
}

/** From this score on a sentence counts as hard. */
export const HARD = 4;
/** From this score on a sentence counts as a riddle. */
export const RIDDLE = 6;

/** The longest plain sentence, in words. */
const LONGEST = 25;
const WORDS_PER_POINT = 6;
/** Shorter fragments, such as table cells and tags, are not judged. */
const SHORTEST = 6;

/** Words that stand for a thing of another sentence. */
const POINTERS = new Set(
  `it its itself they them their those these this that what whatever who whom whose whoever which one ones there then such
   so other others another some any nobody somebody anybody something nothing anything each all both neither`.split(
    /\s+/,
  ),
);
const FEWEST_POINTERS = 3;
/** Share of pointers among the words from which a sentence loses its subject. */
const POINTER_SHARE = 1 / 6;

interface Rule {
  readonly pattern: RegExp;
  readonly points: number;
  readonly reason: string;
}

const RULES: readonly Rule[] = [
  {
    pattern: /^(what|who|whoever|whatever|whose|those|than|of what|where it|nor|likewise)\b/i,
    points: 2.5,
    reason: 'begins without a named subject',
  },
  {
    pattern:
      /\b(who|what) (is|was|has|had|does|did|comes|goes|waits|asks|reads|wants|leaves|left|came|knows|holds|needs)\b/i,
    points: 1.5,
    reason: '"who" or "what" with a verb stands for a noun',
  },
  { pattern: /\b(tells?|told)\b/i, points: 1.5, reason: '"tell" stands for report, log, notify or return' },
  {
    pattern:
      /\b(for|as) (it|they|he|this|that|there|nobody|a|the|its) \w+ (is|are|was|has|have|had|does|would|may|cannot)\b/i,
    points: 1.5,
    reason: '"for" stands for because',
  },
  {
    pattern:
      /\b(no more|any more|not yet any|none for each|of its own|of then|nor does|but for|save for|thereof|goes on|is left)\b/i,
    points: 1,
    reason: 'an idiom stands for a verb',
  },
  {
    pattern:
      /\b(do|does|did|is|are|was|has|have) not\b[^.]{0,60}\b(not|no|nobody|nothing|never|none|neither|nor|without|unless)\b/i,
    points: 1.5,
    reason: 'two negations',
  },
  { pattern: /;[^;]*;/, points: 1, reason: 'three clauses joined by semicolons' },
];

/** Returns the score of a sentence. Code in backticks counts as one word. */
export function score(sentence: string): Score {
  const plain = sentence.replace(/`[^`]*`/g, 'CODE');
  const words = plain.split(/\s+/).filter((word) => /[a-z]/i.test(word));
  if (words.length < SHORTEST) return { points: 0, reasons: [] };
  let points = 0;
  const reasons: string[] = [];
  if (words.length > LONGEST) {
    points += (words.length - LONGEST) / WORDS_PER_POINT + 0.5;
    reasons.push(`${words.length} words, at most ${LONGEST}`);
  }
  const pointers = words.filter((word) => POINTERS.has(word.toLowerCase().replace(/[^a-z]/g, ''))).length;
  const share = pointers / words.length;
  if (pointers >= FEWEST_POINTERS && share > POINTER_SHARE) {
    points += (share - 0.12) * 25;
    reasons.push(`${pointers} of ${words.length} words name no thing`);
  }
  for (const rule of RULES) {
    if (!rule.pattern.test(plain)) continue;
    points += rule.points;
    reasons.push(rule.reason);
  }
  return { points, reasons };
}
