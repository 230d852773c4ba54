// The lines that a run printed or logged.
import type { LogLine } from '../api/api.ts';
import { Copy } from '../components/copy.tsx';
import { clock } from '../components/time.tsx';
import { VirtualList } from '../components/virtual-list.tsx';

interface LogsProps {
  readonly lines: readonly Pick<LogLine, 'time' | 'text' | 'stream'>[];
  readonly cut: number;
  readonly live: boolean;
}

export function Logs({ lines, cut, live }: LogsProps) {
  return (
    <section class="pane" aria-labelledby="logs-title">
      <header class="title">
        <h2 id="logs-title">
          Logs <span class="count">{lines.length.toLocaleString('en')}</span>
        </h2>
        {lines.length > 0 && <Copy text={lines.map(({ text }) => text).join('\n')} label="Copy all log lines" />}
      </header>
      {cut > 0 && <p class="quiet">The store has dropped the oldest {cut.toLocaleString('en')} lines.</p>}
      {lines.length === 0 && <p class="empty">{live ? 'No line yet.' : 'The run printed nothing.'}</p>}
      {lines.length > 0 && (
        <VirtualList
          count={lines.length}
          label="Log lines"
          follow={live}
          row={(index) => {
            const line = lines[index] as LogsProps['lines'][number];
            return (
              <>
                <span class="seq">{clock(line.time)}</span>
                <span class="text" data-stream={line.stream} title={line.text}>
                  {line.text}
                </span>
              </>
            );
          }}
        />
      )}
    </section>
  );
}
