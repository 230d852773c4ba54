// The figures of each fault: the calls under way, their outcomes, and the longest stall.
import type { Wrong } from './checker.ts';
import { type History, overlaps, REFUSED, type Seen, type Trouble } from './history.ts';

export interface Episode extends Trouble {
  readonly name: string;
  /** The time at which the fault ended. */
  readonly overAt: number;
  /** The time at which the slowest kind had its first success among calls that began after the fault, at any gateway. */
  readonly goodAt: number;
  /** The time at which every killed part was back and each gateway answered by itself. */
  readonly wholeAt: number;
}

export const HEADINGS = ['fault', 'accepted', 'ended', 'lost', 'doubled', 'recovery s', 'whole s', 'stall s'] as const;

/**
 * One line of the table; counts are of the calls that were under way during the episode.
 *
 * @param beside the episodes before and after; a call that they stalled does not count for this episode
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

/** Returns the longest stall among calls that succeeded at their first attempt. */
const longestStall = (met: readonly Seen[]): number =>
  Math.max(0, ...met.filter(({ is }) => is === 'ok').map(({ stalledMs = 0 }) => stalledMs));

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

/** Formats columns of equal width, the first one left-aligned. */
export function tableOf(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) => line.map((text, at) => (at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0))))
    .map((line) => line.join('  ').trimEnd())
    .join('\n');
}
