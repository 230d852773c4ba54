// Receivers with trouble: circuit and queue. Absent if all receivers are well.
import type { Receiver } from '../api/receivers.ts';
import { Status } from '../components/status.tsx';
import { Time } from '../components/time.tsx';
import { hrefOf } from '../shell/route.ts';

export function Receivers({ project, receivers }: { project: string; receivers: readonly Receiver[] }) {
  if (receivers.length === 0) return null;
  return (
    <section aria-labelledby="receivers-title">
      <h2 id="receivers-title">Receivers with open work</h2>
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Circuit</th>
            <th scope="col">Receiver</th>
            <th scope="col" class="number">
              Failures in a row
            </th>
            <th scope="col" class="number">
              Attempts now
            </th>
            <th scope="col" class="number">
              Parked
            </th>
            <th scope="col">Next probe</th>
          </tr>
        </thead>
        <tbody>
          {receivers.map((receiver) => (
            <tr key={receiver.host}>
              <td data-label="State">
                <Status state={receiver.circuit} />
              </td>
              <td data-label="Receiver" class="name">
                <a href={hrefOf(project, ['webhooks'], { host: receiver.host })}>{receiver.host}</a>
              </td>
              <td data-label="Failures in a row" class="number">
                {receiver.circuit === 'closed' ? receiver.failures_in_a_row : '–'}
              </td>
              <td data-label="Attempts now" class="number">
                {receiver.open_attempts}
              </td>
              <td data-label="Parked" class="number">
                {receiver.parked}
                {receiver.oldest_parked_at !== undefined && (
                  <>
                    , oldest <Time at={receiver.oldest_parked_at} />
                  </>
                )}
              </td>
              <td data-label="Next probe">
                <Probe at={receiver.probe_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A probe is an attempt. After its time, the next delivery that is due is the probe. */
function Probe({ at }: { readonly at: string | undefined }) {
  if (at !== undefined && Date.parse(at) < Date.now()) return <>the next attempt</>;
  return <Time at={at} />;
}
