// The list of runs, newest first.
import { useEffect, useMemo } from 'preact/hooks';
import { listApps, type Run } from '../api/api.ts';
import { usePolled } from '../api/polled.ts';
import { Problem } from '../components/problem.tsx';
import { Status } from '../components/status.tsx';
import { duration, Since, Time } from '../components/time.tsx';
import { hrefOf, route } from '../shell/route.ts';
import { filtersInAddress, RunFilterForm, requestFilters } from './filters.tsx';
import { RunListModel } from './list-model.ts';

const EVERY_MS = 2_500;

function Took({ run }: { readonly run: Run }) {
  const { started_at: started, ended_at: ended } = run;
  if (started === undefined) return <span class="quiet">–</span>;
  if (ended === undefined) return <Since at={started} />;
  return <>{duration(Date.parse(ended) - Date.parse(started))}</>;
}

function Row({ project, run }: { readonly project: string; readonly run: Run }) {
  return (
    <tr>
      <td data-label="State">
        <Status state={run.status} />
      </td>
      <td data-label="Function" class="name">
        <a href={hrefOf(project, ['runs', run.run_id])}>
          {run.app}/{run.function}
        </a>
        <small class="mono quiet">{run.run_id}</small>
      </td>
      <td data-label="Accepted">
        <Time at={run.accepted_at} />
      </td>
      <td data-label="Duration" class="number">
        <Took run={run} />
      </td>
      <td data-label="Items" class="number">
        {run.items.toLocaleString('en')}
      </td>
      <td data-label="Webhook">
        {run.webhook === undefined ? <span class="quiet">–</span> : <Status state={run.webhook.state} />}
      </td>
    </tr>
  );
}

export function Runs({ project }: { readonly project: string }) {
  const filters = route.value.query.toString();
  const apps = usePolled(project, (signal) => listApps(project, signal), 30_000);
  const model = useMemo(() => new RunListModel(project, () => requestFilters(filtersInAddress())), [project, filters]);
  const polled = usePolled(
    `${project}?${filters}`,
    (signal) => model.refresh(signal).then(() => model.runs.peek()),
    EVERY_MS,
  );
  useEffect(() => {
    document.title = `Runs of ${project}`;
  }, [project]);
  const runs = model.runs.value;
  return (
    <>
      <header class="title">
        <h1>Runs</h1>
        <label class="inline">
          <input
            type="checkbox"
            checked={model.follow.value}
            onChange={(event) => {
              model.follow.value = event.currentTarget.checked;
              model.showNewer();
            }}
          />
          Show new runs at once
        </label>
      </header>
      <RunFilterForm apps={apps.value.value?.apps ?? []} />
      <Problem error={polled.error.value} />
      <p class="newer" role="status">
        {model.newer.value > 0 && (
          <button type="button" onClick={() => model.showNewer()}>
            Show {model.newer.value} new {model.newer.value === 1 ? 'run' : 'runs'}
          </button>
        )}
      </p>
      {runs === undefined && polled.error.value === undefined && <p class="empty">Loading…</p>}
      {runs?.length === 0 && <p class="empty">No run matches. Runs appear here when a function is called.</p>}
      {runs !== undefined && runs.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Function and run</th>
              <th scope="col">Accepted</th>
              <th scope="col" class="number">
                Duration
              </th>
              <th scope="col" class="number">
                Items
              </th>
              <th scope="col">Webhook</th>
            </tr>
          </thead>
          <tbody>
            {runs.map((run) => (
              <Row key={run.run_id} project={project} run={run} />
            ))}
          </tbody>
        </table>
      )}
      {model.cursor.value !== undefined && (
        <p class="buttons">
          <button type="button" disabled={model.loading.value} onClick={() => void model.older()}>
            {model.loading.value ? 'Loading…' : 'Load older runs'}
          </button>
        </p>
      )}
    </>
  );
}
