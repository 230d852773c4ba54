// The form for a token.
import { useSignal } from '@preact/signals';
import { claimsOf, refusal, signIn } from './session.ts';

export function SignIn() {
  const text = useSignal('');
  const wrong = useSignal(false);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const given = text.value.trim().replace(/^Bearer\s+/i, '');
    wrong.value = claimsOf(given) === undefined;
    if (!wrong.value) signIn(given);
  };
  return (
    <form class="sign-in pane" onSubmit={onSubmit}>
      <h1>inference-proxy console</h1>
      {refusal.value !== undefined && (
        <p class="problem" role="alert">
          The gateway refused the token: {refusal.value}
        </p>
      )}
      <label>
        Token
        <input
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="eyJ…"
          value={text.value}
          aria-invalid={wrong.value}
          aria-describedby="token-help"
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
      </label>
      {wrong.value && (
        <p class="wrong" role="alert">
          This text is not a JWT: three parts with dots between them.
        </p>
      )}
      <p id="token-help" class="quiet">
        Paste a JWT of the project. The token stays in this tab and is forgotten when the tab closes. The development
        stack prints one with <code>npm run --silent token -- --project demo</code>.
      </p>
      <button type="submit" class="primary">
        Open the console
      </button>
    </form>
  );
}
