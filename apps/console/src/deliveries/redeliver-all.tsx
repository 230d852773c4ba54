// Redelivers all deliveries that match the filters. The count comes first, because each delivery is a request to a stranger.
import { useSignal } from '@preact/signals';
import { type DeliveryFilters, redeliverAll } from '../api/api.ts';
import { countDeliveries } from '../api/receivers.ts';
import { Dialog } from '../components/dialog.tsx';
import { Problem } from '../components/problem.tsx';

/** The most redeliveries of one request. */
const PAGE = 100;

const inWords = (count: number): string => count.toLocaleString('en');

interface RedeliverAllProps {
  readonly project: string;
  readonly filters: () => DeliveryFilters;
  readonly onDone: () => void;
}

export function RedeliverAll({ project, filters, onDone }: RedeliverAllProps) {
  const asked = useSignal<DeliveryFilters | undefined>(undefined);
  const count = useSignal<number | undefined>(undefined);
  const sent = useSignal<number | undefined>(undefined);
  const busy = useSignal(false);
  const problem = useSignal<Error | undefined>(undefined);
  const tried = async (what: () => Promise<void>): Promise<void> => {
    problem.value = undefined;
    await what().catch((error: unknown) => {
      problem.value = error as Error;
    });
    busy.value = false;
  };
  const ask = (): void => {
    const chosen = filters();
    // The service redelivers failed deliveries if no state is named. The end keeps new deliveries out of the confirmed set.
    const found = { ...chosen, status: chosen.status ?? 'failed', until: new Date().toISOString() };
    asked.value = found;
    count.value = undefined;
    sent.value = undefined;
    void tried(async () => {
      count.value = await countDeliveries(project, found);
    });
  };
  const confirm = (): void => {
    busy.value = true;
    void tried(async () => {
      let cursor: string | undefined;
      let total = 0;
      do {
        const page = await redeliverAll(project, { ...asked.peek(), limit: PAGE, ...(cursor && { cursor }) });
        total += page.redelivered;
        sent.value = total;
        cursor = page.cursor;
      } while (cursor !== undefined);
      onDone();
    });
  };
  const { status = '', host } = asked.value ?? {};
  const ready = count.value !== undefined && count.value > 0 && sent.value === undefined && !busy.value;
  return (
    <>
      <button type="button" onClick={ask}>
        Redeliver all…
      </button>
      {asked.value !== undefined && (
        <Dialog
          title="Redeliver all matching deliveries"
          {...(ready && { confirm: `Redeliver ${inWords(count.value ?? 0)}`, onConfirm: confirm })}
          onClose={() => {
            asked.value = undefined;
          }}
        >
          <p role="status">
            {sent.value !== undefined
              ? `${sent.value.toLocaleString('en')} redeliveries were requested.`
              : count.value === undefined
                ? 'Counting…'
                : `${inWords(count.value)} ${status} ${count.value === 1 ? 'delivery' : 'deliveries'}${host ? ` to ${host}` : ''} to redeliver.`}
          </p>
          <Problem error={problem.value} />
        </Dialog>
      )}
    </>
  );
}
