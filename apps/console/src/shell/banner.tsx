// Reports a lost gateway until the gateway answers again.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { lost, recoveries } from '../api/connection.ts';

const RECOVERED_SHOWN_MS = 4_000;

export function ConnectionBanner() {
  const recovered = useSignal(false);
  const times = recoveries.value;
  useEffect(() => {
    if (times === 0) return;
    recovered.value = true;
    const timer = setTimeout(() => {
      recovered.value = false;
    }, RECOVERED_SHOWN_MS);
    return () => clearTimeout(timer);
  }, [times, recovered]);
  return (
    <div role="status" class="banner-place">
      {lost.value && (
        <p class="banner" data-tone="bad">
          The gateway does not answer. The page shows the last known state and tries again.
        </p>
      )}
      {!lost.value && recovered.value && (
        <p class="banner" data-tone="good">
          The gateway answers again.
        </p>
      )}
    </div>
  );
}
