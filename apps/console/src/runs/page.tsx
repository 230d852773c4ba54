// The page of one run.
import { useEffect, useMemo } from 'preact/hooks';
import { Copy } from '../components/copy.tsx';
import { Items } from '../components/items.tsx';
import { ErrorBox, Problem } from '../components/problem.tsx';
import { Status } from '../components/status.tsx';
import { duration, Time } from '../components/time.tsx';
import { DeliveriesOfRun } from '../deliveries/of-run.tsx';
import { hrefOf } from '../shell/route.ts';
import { RunActions } from './actions.tsx';
import { Logs } from './logs.tsx';
import { ParametersView } from './parameters.tsx';
import { Result } from './result.tsx';
import { Timeline } from './timeline.tsx';
import { RunWatch } from './watch.ts';

export function RunPage({ project, runId }: { readonly project: string; readonly runId: string }) {
  const watch = useMemo(() => new RunWatch(project, runId), [project, runId]);
  useEffect(() => watch.begin(), [watch]);
  const run = watch.run.value;
  useEffect(() => {
    document.title = run === undefined ? 'Run' : `${run.status}: ${run.app}/${run.function}`;
  }, [run]);
  if (run === undefined)
    return watch.problem.value ? <Problem error={watch.problem.value} /> : <p class="empty">Loading…</p>;
  const live = watch.live.value;
  const streamed = run.items > 0 || watch.items.arrived.value > 0;
  const parameters = watch.parameters.value;
  return (
    <>
      <header class="title">
        <h1>
          {run.app}/{run.function}
        </h1>
        <span role="status">
          <Status state={run.status} />
        </span>
      </header>
      <dl class="facts">
        <div>
          <dt>Run</dt>
          <dd class="mono">
            {run.run_id} <Copy text={run.run_id} label="Copy the id of the run" />
          </dd>
        </div>
        <div>
          <dt>Accepted</dt>
          <dd>
            <Time at={run.accepted_at} />
          </dd>
        </div>
        {run.run_time_ms !== undefined && (
          <div>
            <dt>Time in the function</dt>
            <dd>{duration(run.run_time_ms)}</dd>
          </div>
        )}
        {run.version !== undefined && (
          <div>
            <dt>Version</dt>
            <dd class="mono">
              <a href={hrefOf(project, ['apps', run.app])}>{run.version.slice(0, 12)}</a>
            </dd>
          </div>
        )}
        {run.status_code !== undefined && (
          <div>
            <dt>HTTP status</dt>
            <dd>{run.status_code}</dd>
          </div>
        )}
      </dl>
      <RunActions project={project} run={run} parameters={parameters} onChange={() => watch.changed()} />
      <Problem error={watch.problem.value} />
      {run.error && <ErrorBox error={run.error} title="Error of the run" />}
      <Timeline run={run} deliveries={watch.deliveries.value} />
      <div class="beside">
        {(live || streamed) && (
          <div>
            <Problem error={watch.streamProblem.value} />
            <Items log={watch.items} live={live} />
          </div>
        )}
        {!live && !streamed && run.status === 'succeeded' && <Result run={run} />}
        <Logs lines={watch.lines.value} cut={watch.cutLines.value} live={live} />
      </div>
      {streamed && !live && run.content_type !== undefined && run.result !== undefined && <Result run={run} />}
      {parameters && <ParametersView parameters={parameters} />}
      {watch.noParameters.value !== undefined && <p class="quiet">{watch.noParameters.value}</p>}
      {run.webhook && (
        <DeliveriesOfRun project={project} deliveries={watch.deliveries.value} onChange={() => watch.redelivered()} />
      )}
    </>
  );
}
