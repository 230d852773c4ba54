// An error as a person reads it: code, message, fields, and the trace where the app allows it.
import type { ErrorObject } from '../api/api.ts';
import { ApiError } from '../api/request.ts';

export function ErrorBox({ error, title }: { readonly error: ErrorObject; readonly title?: string }) {
  const { code, type, message, retryable, details = [], traceback } = error;
  return (
    <section class="problem" aria-label={title ?? 'Error'}>
      <p>
        <strong>{type ?? code}</strong> {type !== undefined && <code>{code}</code>}{' '}
        {retryable && <span class="tag">a retry may succeed</span>}
      </p>
      <p class="message">{message}</p>
      {details.length > 0 && (
        <ul>
          {details.map(({ loc, msg }) => (
            <li key={loc.join('.')}>
              <code>{loc.slice(1).join('.')}</code> {msg}
            </li>
          ))}
        </ul>
      )}
      {traceback !== undefined && (
        <details open>
          <summary>Traceback</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a wide text. */}
          <pre class="trace" tabIndex={0}>
            {traceback}
          </pre>
        </details>
      )}
    </section>
  );
}

/** Shows why a view could not load. */
export function Problem({ error }: { readonly error: Error | undefined }) {
  if (error === undefined) return null;
  if (error instanceof ApiError) return <ErrorBox error={error.error} />;
  return (
    <section class="problem" aria-label="Error">
      <p class="message">{error.message}</p>
    </section>
  );
}
