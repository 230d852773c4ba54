// A button that shows or hides an element.
import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

interface ToggleProps {
  readonly open: Signal<boolean>;
  /** The id of the element. */
  readonly controls: string;
  readonly children: ComponentChildren;
}

export function Toggle({ open, controls, children }: ToggleProps) {
  return (
    <button
      type="button"
      class="small"
      aria-expanded={open.value}
      aria-controls={controls}
      onClick={() => {
        open.value = !open.value;
      }}
    >
      {children}
    </button>
  );
}
