// Items of a stream: one line each in a list that scrolls smoothly, and the whole item beside it on request.
import { useSignal } from '@preact/signals';
import type { ItemLog } from '../runs/item-log.ts';
import { Copy } from './copy.tsx';
import { JsonTree } from './json-tree.tsx';
import { VirtualList } from './virtual-list.tsx';

const LINE = 400;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function WholeItem({ text, number, onClose }: { text: string; number: number; onClose: () => void }) {
  const value = parsed(text);
  return (
    <section class="whole" aria-label={`Item ${number}`}>
      <p class="title">
        <strong>Item {number.toLocaleString('en')}</strong>
        <Copy text={text} label={`Copy item ${number}`} />
        <button type="button" class="small" onClick={onClose}>
          Close
        </button>
      </p>
      {typeof value === 'object' && value !== null ? <JsonTree value={value} /> : <pre>{text}</pre>}
    </section>
  );
}

interface ItemsProps {
  readonly log: ItemLog;
  /** Whether more items may arrive. */
  readonly live: boolean;
}

export function Items({ log, live }: ItemsProps) {
  const chosen = useSignal<number | undefined>(undefined);
  const shown = log.shown.value;
  const behind = log.arrived.value - log.dropped.value - shown;
  const first = log.dropped.value + 1;
  return (
    <section class="pane" aria-labelledby="items-title">
      <header class="title">
        <h2 id="items-title">
          Items <span class="count">{log.arrived.value.toLocaleString('en')}</span>
        </h2>
        {live && <span class="live">live</span>}
        {(live || log.paused.value) && (
          <button type="button" class="small" onClick={() => (log.paused.value ? log.resume() : log.pause())}>
            {log.paused.value ? 'Resume' : 'Pause'}
          </button>
        )}
        {log.paused.value && <span role="status">{behind.toLocaleString('en')} more arrived</span>}
        {shown > 0 && <Copy text={log.all().join('\n')} label="Copy all items" />}
      </header>
      {log.dropped.value > 0 && (
        <p class="quiet">The page has dropped the oldest {log.dropped.value.toLocaleString('en')} items.</p>
      )}
      {shown === 0 && <p class="empty">{live ? 'No item yet.' : 'No items.'}</p>}
      {shown > 0 && (
        <VirtualList
          count={shown}
          label="Items"
          follow={live && !log.paused.value}
          chosen={chosen.value === undefined ? undefined : chosen.value - first}
          onChoose={(index) => {
            chosen.value = first + index;
          }}
          row={(index) => (
            <>
              <span class="seq">{first + index}</span>
              <span class="text">{log.at(index).slice(0, LINE)}</span>
            </>
          )}
        />
      )}
      {chosen.value !== undefined && (
        <WholeItem
          text={log.at(chosen.value - first)}
          number={chosen.value}
          onClose={() => {
            chosen.value = undefined;
          }}
        />
      )}
    </section>
  );
}
