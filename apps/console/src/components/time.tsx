// Times and durations for people. The exact time is in the title and in `datetime`.
import { signal } from '@preact/signals';

const TICK_MS = 1_000;
const now = signal(Date.now());
setInterval(() => {
  if (document.visibilityState === 'visible') now.value = Date.now();
}, TICK_MS);

const STEPS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const;

/** Returns a duration in its largest unit, such as `3 min` or `412 ms`. @param ms milliseconds */
export function duration(ms: number): string {
  if (ms < 1_000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const [size, unit] = STEPS.find(([each]) => ms >= each) ?? [1_000, 's'];
  return `${Math.floor(ms / size)} ${unit}`;
}

function relative(ms: number): string {
  const distance = Math.abs(ms);
  if (distance < 1_500) return 'now';
  const [size, unit] = STEPS.find(([each]) => distance >= each) ?? [1_000, 's'];
  const text = `${Math.floor(distance / size)} ${unit}`;
  return ms >= 0 ? `${text} ago` : `in ${text}`;
}

/** A time relative to now. @param at RFC 3339 */
export function Time({ at }: { readonly at: string | undefined }) {
  if (at === undefined) return <span class="quiet">–</span>;
  const time = new Date(at);
  return (
    <time dateTime={at} title={time.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' })}>
      {relative(now.value - time.getTime())}
    </time>
  );
}

/** The time of day with milliseconds. @param at RFC 3339 */
export const clock = (at: string): string => {
  const time = new Date(at);
  return `${time.toLocaleTimeString('en-GB')}.${String(time.getMilliseconds()).padStart(3, '0')}`;
};

/** The time since a moment while something is under way. @param at RFC 3339 */
export function Since({ at }: { readonly at: string }) {
  return <>{duration(Math.max(0, now.value - Date.parse(at)))}</>;
}
