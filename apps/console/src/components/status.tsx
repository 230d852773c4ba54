// The state of an app, a run, a version or a delivery: a colour and always its word.

/** The tone of each state that the API has. */
const TONES: Readonly<Record<string, string>> = {
  ready: 'good',
  active: 'good',
  succeeded: 'good',
  delivered: 'good',
  closed: 'good',
  running: 'busy',
  starting: 'busy',
  building: 'busy',
  pending: 'busy',
  recovering: 'warn',
  timed_out: 'warn',
  expired: 'warn',
  broken: 'bad',
  failed: 'bad',
  open: 'bad',
};

export function Status({ state }: { readonly state: string }) {
  return (
    <span class="status" data-tone={TONES[state] ?? 'quiet'} data-state={state}>
      {state.replaceAll('_', ' ')}
    </span>
  );
}
