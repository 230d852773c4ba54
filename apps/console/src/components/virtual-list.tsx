// A list of which only the visible rows are in the page, so 10,000 rows scroll like 30. The arrow keys choose a row.
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
  Virtualizer,
} from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';

const ROW_PX = 24;
const BORDERS_PX = 2;
const OVERSCAN = 12;
/** A list that is scrolled to within this distance of its end follows new rows. */
const NEAR_END_PX = ROW_PX * 2;

interface ListProps {
  readonly count: number;
  readonly label: string;
  /** Whether the list stays at its end while rows arrive and the person has not scrolled up. */
  readonly follow: boolean;
  readonly chosen?: number | undefined;
  readonly onChoose?: (index: number) => void;
  readonly row: (index: number) => ComponentChildren;
}

/** By key: the row after the present one. */
const MOVES: Readonly<Record<string, (at: number, last: number) => number>> = {
  ArrowDown: (at, last) => Math.min(last, at + 1),
  ArrowUp: (at) => Math.max(0, at - 1),
  Home: () => 0,
  End: (_, last) => last,
};

export function VirtualList({ count, label, follow, chosen, onChoose, row }: ListProps) {
  const [, render] = useReducer((n: number) => n + 1, 0);
  const frame = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const id = useId();
  const options = {
    count,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    getScrollElement: () => frame.current,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => render(undefined as never),
  };
  const [list] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  list.setOptions(options);
  useLayoutEffect(() => list._didMount(), [list]);
  useLayoutEffect(() => list._willUpdate());
  useLayoutEffect(() => {
    const element = frame.current;
    if (follow && atEnd.current && element) element.scrollTop = element.scrollHeight;
  }, [count, follow]);
  const onScroll = (): void => {
    const element = frame.current;
    if (element) atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END_PX;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = MOVES[event.key];
    if (move === undefined || onChoose === undefined) return;
    event.preventDefault();
    const to = move(chosen ?? (event.key === 'ArrowUp' ? count : -1), count - 1);
    list.scrollToIndex(to);
    onChoose(to);
  };
  return (
    <div
      class="rows"
      ref={frame}
      tabIndex={0}
      role="listbox"
      aria-label={label}
      aria-activedescendant={chosen === undefined ? undefined : `${id}-${chosen}`}
      style={{ height: `min(${count * ROW_PX + BORDERS_PX}px, 26rem, 60vh)` }}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
    >
      <div class="rows-space" style={{ height: `${list.getTotalSize()}px` }} role="presentation">
        {list.getVirtualItems().map((item: VirtualItem) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys.
          // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus, and names its active row.
          <div
            class="row"
            key={item.index}
            id={`${id}-${item.index}`}
            role="option"
            aria-selected={item.index === chosen}
            style={{ transform: `translateY(${item.start}px)` }}
            onClick={() => onChoose?.(item.index)}
          >
            {row(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
