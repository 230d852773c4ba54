// How a call is answered, and its webhook.
import type { Signal } from '@preact/signals';

export type Mode = 'stream' | 'answer' | 'async';

const MODES: readonly (readonly [Mode, string])[] = [
  ['stream', 'Stream'],
  ['answer', 'Answer'],
  ['async', 'Async'],
];

interface OptionsProps {
  readonly mode: Signal<Mode>;
  readonly webhook: Signal<string>;
  readonly secret: Signal<string>;
}

export function Options({ mode, webhook, secret }: OptionsProps) {
  return (
    <>
      <fieldset class="modes">
        <legend>Answer by</legend>
        {MODES.map(([value, label]) => (
          <label key={value} class="inline">
            <input
              type="radio"
              name="mode"
              checked={mode.value === value}
              onChange={() => {
                mode.value = value;
              }}
            />
            {label}
          </label>
        ))}
      </fieldset>
      <details>
        <summary>Webhook</summary>
        <div class="inner">
          <label class="field">
            URL of the receiver
            <input
              type="url"
              placeholder="https://receiver.example.com/hook"
              value={webhook.value}
              onInput={(event) => {
                webhook.value = event.currentTarget.value;
              }}
            />
          </label>
          <label class="field">
            Secret that signs the delivery
            <input
              type="password"
              autocomplete="off"
              value={secret.value}
              onInput={(event) => {
                secret.value = event.currentTarget.value;
              }}
            />
          </label>
        </div>
      </details>
    </>
  );
}
