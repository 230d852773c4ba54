// The deliveries of a project, newest first, with their attempts on request.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type Delivery, deliveriesOfRun, listDeliveries } from '../api/api.ts';
import { usePolled } from '../api/polled.ts';
import { listReceivers } from '../api/receivers.ts';
import { Problem } from '../components/problem.tsx';
import { Status } from '../components/status.tsx';
import { Time } from '../components/time.tsx';
import { Toggle } from '../components/toggle.tsx';
import { may } from '../session/session.ts';
import { hrefOf, route } from '../shell/route.ts';
import { Attempts } from './attempts.tsx';
import { DeliveryFilterForm, deliveryFilters } from './filters.tsx';
import { Receivers } from './receivers.tsx';
import { Redeliver } from './redeliver.tsx';
import { RedeliverAll } from './redeliver-all.tsx';

const EVERY_MS = 3_000;
const PAGE = 50;

interface RowProps {
  readonly project: string;
  readonly delivery: Delivery;
  readonly onChange: () => void;
}

function AttemptsOf({ project, delivery }: Pick<RowProps, 'project' | 'delivery'>) {
  const { run_id: run, delivery_id: id } = delivery;
  const polled = usePolled(run, (signal) => deliveriesOfRun(project, run, signal), EVERY_MS);
  const found = polled.value.value?.deliveries.find((each) => each.delivery_id === id);
  return (
    <>
      <Problem error={polled.error.value} />
      {found && <Attempts log={found.log ?? []} />}
    </>
  );
}

function Row({ project, delivery, onChange }: RowProps) {
  const open = useSignal(false);
  const { run_id: run, url, status, attempts, last_attempt: last } = delivery;
  const id = `attempts-${delivery.delivery_id}`;
  return (
    <>
      <tr>
        <td data-label="State">
          <Status state={delivery.parked ? 'parked' : status} />
        </td>
        <td data-label="Receiver" class="name">
          <span class="url">{url}</span>
          <small>
            <a class="mono" href={hrefOf(project, ['runs', run])}>
              {run}
            </a>
          </small>
        </td>
        <td data-label="Last attempt">{last?.status ?? last?.error ?? <span class="quiet">–</span>}</td>
        <td data-label="Created">
          <Time at={delivery.created_at} />
        </td>
        <td data-label="Next attempt">
          {delivery.attempt_under_way ? 'under way' : <Time at={delivery.next_attempt_at} />}
        </td>
        <td data-label="">
          <span class="buttons">
            <Toggle open={open} controls={id}>
              {attempts} {attempts === 1 ? 'attempt' : 'attempts'}
            </Toggle>
            <Redeliver project={project} delivery={delivery} onChange={onChange} />
          </span>
        </td>
      </tr>
      {open.value && (
        <tr id={id} class="more">
          <td colSpan={6}>
            <AttemptsOf project={project} delivery={delivery} />
          </td>
        </tr>
      )}
    </>
  );
}

export function Webhooks({ project }: { readonly project: string }) {
  const pages = useSignal(1);
  const filters = route.value.query.toString();
  const polled = usePolled(
    `${project}?${filters} ${pages.value}`,
    async (signal) => {
      const deliveries: Delivery[] = [];
      let cursor: string | undefined;
      // A filtered page may be short, so the number of rows decides, not the number of pages.
      do {
        const query = { ...deliveryFilters(), limit: PAGE, ...(cursor !== undefined && { cursor }) };
        const page = await listDeliveries(project, query, signal);
        deliveries.push(...page.deliveries);
        cursor = page.cursor;
      } while (cursor !== undefined && deliveries.length < pages.peek() * PAGE);
      return { deliveries, more: cursor !== undefined };
    },
    EVERY_MS,
  );
  const receivers = usePolled(`receivers ${project}`, (signal) => listReceivers(project, signal));
  useEffect(() => {
    document.title = `Webhooks of ${project}`;
  }, [project]);
  const { deliveries, more = false } = polled.value.value ?? {};
  return (
    <>
      <header class="title">
        <h1>Webhooks</h1>
      </header>
      <Receivers project={project} receivers={receivers.value.value ?? []} />
      <div class="title over-list">
        <DeliveryFilterForm />
        {may('runs:write') && <RedeliverAll project={project} filters={deliveryFilters} onDone={polled.refresh} />}
      </div>
      <Problem error={polled.error.value ?? receivers.error.value} />
      {deliveries === undefined && polled.error.value === undefined && <p class="empty">Loading…</p>}
      {deliveries?.length === 0 && <p class="empty">No delivery matches. Calls with a webhook appear here.</p>}
      {deliveries !== undefined && deliveries.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Receiver and run</th>
              <th scope="col">Last attempt</th>
              <th scope="col">Created</th>
              <th scope="col">Next attempt</th>
              <th scope="col">Actions</th>
            </tr>
          </thead>
          <tbody>
            {deliveries.map((delivery) => (
              <Row key={delivery.delivery_id} project={project} delivery={delivery} onChange={polled.refresh} />
            ))}
          </tbody>
        </table>
      )}
      {more && (
        <p class="buttons">
          <button
            type="button"
            onClick={() => {
              pages.value += 1;
            }}
          >
            Load older deliveries
          </button>
        </p>
      )}
    </>
  );
}
