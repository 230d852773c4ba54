// The attempts of a delivery: request headers, status, start of the receiver's answer.
import type { Attempt } from '../api/api.ts';
import { HeaderList } from '../components/header-list.tsx';
import { clock, duration, Time } from '../components/time.tsx';

function AttemptView({ attempt }: { readonly attempt: Attempt }) {
  const { status, error, message, answer, address, location, request_headers: headers } = attempt;
  const good = status !== undefined && status >= 200 && status < 300;
  return (
    <li class="attempt">
      <p class="title">
        <strong>Attempt {attempt.attempt}</strong>
        <span class="status" data-tone={good ? 'good' : 'bad'}>
          {status ?? error ?? 'no answer'}
        </span>
        {status !== undefined && error !== undefined && <code>{error}</code>}
        <span class="quiet">
          <Time at={attempt.at} /> ({clock(attempt.at)}), {duration(attempt.duration_ms)}
          {address !== undefined && ` at ${address}`}
        </span>
      </p>
      {message !== undefined && <p class="message">{message}</p>}
      {location !== undefined && <p>Redirect to {location}, which is not followed.</p>}
      {attempt.parked && (
        <p class="quiet">
          Waited for the receiver since {clock(attempt.parked.since)} ({attempt.parked.reason}).
        </p>
      )}
      {headers && <HeaderList summary="Request headers" headers={Object.entries(headers)} />}
      {answer !== undefined && answer !== '' && (
        <details open={!good}>
          <summary>Start of the answer</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a wide text. */}
          <pre tabIndex={0}>{answer}</pre>
        </details>
      )}
      {attempt.next_attempt_at !== undefined && (
        <p class="quiet">
          Next attempt <Time at={attempt.next_attempt_at} />
        </p>
      )}
    </li>
  );
}

export function Attempts({ log }: { readonly log: readonly Attempt[] }) {
  if (log.length === 0) return <p class="empty">No attempt yet.</p>;
  return (
    <ol class="attempts">
      {log.toReversed().map((attempt) => (
        <AttemptView key={attempt.attempt} attempt={attempt} />
      ))}
    </ol>
  );
}
