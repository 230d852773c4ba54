// A question before a change that cannot be undone.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  /** The name of the button that confirms. Without it the dialog only closes. */
  readonly confirm?: string;
  readonly onConfirm?: () => void;
  readonly onClose: () => void;
}

export function Dialog({ title, children, confirm, onConfirm, onClose }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  // A modal dialog keeps the focus inside and closes with Escape.
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
      <p class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          {confirm === undefined ? 'Close' : 'Keep as it is'}
        </button>
        {confirm !== undefined && (
          <button type="button" class="primary" onClick={onConfirm}>
            {confirm}
          </button>
        )}
      </p>
    </dialog>
  );
}
