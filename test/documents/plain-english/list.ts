// `npm run plain [-- PATH...]`: lists the hardest sentences of the repository with their places, the hardest first.
import { dirname, join } from 'node:path';
import { sentencesOfRepository } from './prose.ts';
import { HARD, RIDDLE, score } from './score.ts';

const LISTED = 40;
/** Sentences from this score on are listed. */
const WORTH_A_LOOK = 3;

const root = join(dirname(new URL(import.meta.url).pathname), '..', '..', '..');
const paths = process.argv.slice(2);
const all = sentencesOfRepository(root)
  .filter(({ file }) => paths.length === 0 || paths.some((path) => file.startsWith(path)))
  .map((sentence) => ({ ...sentence, ...score(sentence.text) }))
  .sort((a, b) => b.points - a.points);
const count = (least: number): number => all.filter(({ points }) => points >= least).length;

for (const { file, line, text, points, reasons } of all.slice(0, LISTED))
  if (points >= WORTH_A_LOOK)
    console.log(`${points.toFixed(1)}  ${file}:${line}  ${text}\n     (${reasons.join('; ')})`);
console.log(
  `${all.length} sentences: ${count(HARD)} hard (${HARD} or more), ${count(RIDDLE)} riddles (${RIDDLE} or more)`,
);
