// What is told of each fault: how many calls it met, what became of them, and how long anybody waited.
import type { Wrong } from './checker.ts';
import { type History, overlaps, REFUSED, type Seen, type Trouble } from './history.ts';

export interface Episode extends Trouble {
  readonly name: string;
  /** When what was wrong had ended. */
  readonly overAt: number;
  /** When the first call that began after that had ended well, of the kind that came last: wherever the proxy sent it. */
  readonly goodAt: number;
  /** When all was as before: what was killed is there again, and each gateway answers by itself. */
  readonly wholeAt: number;
}

export const HEADINGS = ['fault', 'accepted', 'ended', 'lost', 'doubled', 'recovery s', 'whole s', 'stall s'] as const;

/**
 * One line of the table; counts are of the calls that were under way during the episode.
 *
 * @param beside the ones before and after it: whoever they held up was not held up by this one
 */
export function lineOf(
  episode: Episode,
  { before, after }: { readonly before?: Episode | undefined; readonly after?: Episode | undefined },
  { seen }: Pick<History, 'seen'>,
  wrong: readonly Wrong[],
): string[] {
  const met = seen.filter((one) => overlaps(one, episode));
  const heldUpByAfter = ({ beganAt, endedAt }: Seen): boolean =>
    after !== undefined && beganAt >= episode.overAt && endedAt > after.from;
  const own = met.filter((one) => one.beganAt >= (before?.overAt ?? 0) && !heldUpByAfter(one));
  const accepted = met.filter(({ is }) => !REFUSED.has(is)).length;
  const of = (is: Wrong['is']): number =>
    new Set(wrong.flatMap((one) => (one.is === is && one.seen && overlaps(one.seen, episode) ? [one.seen.tag] : [])))
      .size;
  const lost = of('lost');
  return [
    episode.name,
    String(accepted),
    String(accepted - lost),
    String(lost),
    String(of('doubled')),
    seconds(Math.max(0, episode.goodAt - episode.overAt)),
    seconds(Math.max(0, episode.wholeAt - episode.overAt)),
    seconds(longestStall(own)),
  ];
}

/** Of those that had what they came for at their first attempt: the longest that nothing came. */
const longestStall = (met: readonly Seen[]): number =>
  Math.max(0, ...met.filter(({ is }) => is === 'ok').map(({ stalledMs = 0 }) => stalledMs));

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

/** Columns of equal width, the first to the left. */
export function tableOf(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) => line.map((text, at) => (at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0))))
    .map((line) => line.join('  ').trimEnd())
    .join('\n');
}
