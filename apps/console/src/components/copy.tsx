// Copies a text. A page over plain HTTP has no clipboard API, so a selected field is the alternative.
import { useSignal } from '@preact/signals';

const SHOWN_MS = 1_500;

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'away';
    document.body.append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    return done;
  }
}

/** @param label what is copied; the name of the button */
export function Copy({ text, label, children }: { text: string; label: string; children?: string }) {
  const state = useSignal('');
  const onClick = async (): Promise<void> => {
    state.value = (await copied(text)) ? 'Copied' : 'Not copied';
    setTimeout(() => {
      state.value = '';
    }, SHOWN_MS);
  };
  return (
    <button type="button" class="small" aria-label={label} onClick={onClick}>
      {state.value || (children ?? 'Copy')}
    </button>
  );
}
