// The lines of a build or of a start, with their times.
import { clock } from './time.tsx';

interface LogTextProps {
  readonly label: string;
  readonly lines: readonly { readonly time: string; readonly text: string }[];
}

export function LogText({ label, lines }: LogTextProps) {
  return (
    <section aria-label={label}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a wide text. */}
      <pre class="log" tabIndex={0}>
        {lines.map(({ time, text }) => `${clock(time)} ${text}\n`)}
      </pre>
    </section>
  );
}
