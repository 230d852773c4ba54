// The button that redelivers one delivery.
import { useSignal } from '@preact/signals';
import { type Delivery, redeliver } from '../api/api.ts';
import { Problem } from '../components/problem.tsx';
import { may } from '../session/session.ts';

export function Redeliver({
  project,
  delivery,
  onChange,
}: {
  project: string;
  delivery: Delivery;
  onChange: () => void;
}) {
  const problem = useSignal<Error | undefined>(undefined);
  const asked = useSignal(false);
  if (!may('runs:write') || delivery.status === 'waiting') return null;
  const onClick = async (): Promise<void> => {
    asked.value = true;
    problem.value = undefined;
    try {
      await redeliver(project, delivery);
      onChange();
    } catch (error) {
      problem.value = error as Error;
    }
    asked.value = false;
  };
  return (
    <>
      <button type="button" class="small" disabled={asked.value} onClick={() => void onClick()}>
        Redeliver
      </button>
      <Problem error={problem.value} />
    </>
  );
}
