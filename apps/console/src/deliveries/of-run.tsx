// The deliveries of one run.
import type { Delivery } from '../api/api.ts';
import { Status } from '../components/status.tsx';
import { Time } from '../components/time.tsx';
import { Attempts } from './attempts.tsx';
import { Redeliver } from './redeliver.tsx';

interface DeliveriesProps {
  readonly project: string;
  readonly deliveries: readonly Delivery[];
  /** Called after a redelivery was requested. */
  readonly onChange: () => void;
}

export function DeliveriesOfRun({ project, deliveries, onChange }: DeliveriesProps) {
  return (
    <section class="pane" aria-labelledby="webhook-title">
      <h2 id="webhook-title">Webhook</h2>
      {deliveries.map((delivery) => (
        <article key={delivery.delivery_id}>
          <p class="title">
            <Status state={delivery.status} />
            <span class="mono url">{delivery.url}</span>
            {delivery.next_attempt_at !== undefined && (
              <span>
                next attempt <Time at={delivery.next_attempt_at} />
              </span>
            )}
            <Redeliver project={project} delivery={delivery} onChange={onChange} />
          </p>
          <Attempts log={delivery.log ?? []} />
        </article>
      ))}
    </section>
  );
}
