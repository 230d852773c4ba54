// The page of one app: its numbers, functions, versions and secrets.
import { useEffect } from 'preact/hooks';
import { type AppWithVersions, type FunctionSpec, readApp } from '../api/api.ts';
import { usePolled } from '../api/polled.ts';
import { listSecrets } from '../api/secrets.ts';
import { readStats } from '../api/stats.ts';
import { Copy } from '../components/copy.tsx';
import { LogText } from '../components/log-text.tsx';
import { Problem } from '../components/problem.tsx';
import { Status } from '../components/status.tsx';
import { Time } from '../components/time.tsx';
import { Numbers } from '../overview/numbers.tsx';
import { AppFacts } from '../overview/overview.tsx';
import { may } from '../session/session.ts';
import { hrefOf } from '../shell/route.ts';
import { Versions } from './versions.tsx';

const WINDOW_S = 21_600;
const CHART_PX = 150;
const SECRETS_EVERY_MS = 30_000;

/** Shows what a broken app printed while it started. */
function StartLog({ lines }: { readonly lines: NonNullable<AppWithVersions['start_log']> }) {
  if (lines.length === 0) return null;
  return (
    <section class="pane" aria-labelledby="start-log-title">
      <header class="title">
        <h2 id="start-log-title">Log of the last start</h2>
        <Copy text={lines.map(({ text }) => text).join('\n')} label="Copy the log of the last start" />
      </header>
      <LogText label="Lines of the start" lines={lines} />
    </section>
  );
}

function Functions({ project, app, functions }: { project: string; app: string; functions: readonly FunctionSpec[] }) {
  if (functions.length === 0) return null;
  return (
    <section class="pane" aria-labelledby="functions-title">
      <h2 id="functions-title">Functions</h2>
      <ul class="functions">
        {functions.map(({ name, parameters, schema, doc }) => (
          <li key={name}>
            <a href={hrefOf(project, ['try', app, name])}>{name}</a>
            <code class="quiet">
              ({parameters.map(({ name: parameter, required }) => `${parameter}${required ? '' : '?'}`).join(', ')})
            </code>{' '}
            <span class="quiet">{schema?.summary ?? doc}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Activations({ activations }: { readonly activations: AppWithVersions['activations'] }) {
  if (activations.length === 0) return null;
  return (
    <section class="pane" aria-labelledby="activations-title">
      <h2 id="activations-title">Activations</h2>
      <ol>
        {activations.map(({ time, version, author }) => (
          <li key={time}>
            <Time at={time} /> <code>{version.slice(0, 12)}</code> {author !== undefined && `by ${author}`}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Secrets({ project, app }: { readonly project: string; readonly app: string }) {
  const secrets = usePolled(`${project}/${app}`, (signal) => listSecrets(project, app, signal), SECRETS_EVERY_MS);
  const list = secrets.value.value;
  if (list === undefined) return null;
  return (
    <section class="pane" aria-labelledby="secrets-title">
      <h2 id="secrets-title">Secrets</h2>
      {list.length === 0 && <p class="empty">The app has no secrets.</p>}
      <ul>
        {list.map(({ name }) => (
          <li key={name} class="mono">
            {name}
          </li>
        ))}
      </ul>
    </section>
  );
}

export function AppPage({ project, app }: { readonly project: string; readonly app: string }) {
  const polled = usePolled(`${project}/${app}`, (signal) => readApp(project, app, signal), 3_000);
  const stats = usePolled(project, (signal) => readStats(project, WINDOW_S, signal));
  useEffect(() => {
    document.title = `${project}/${app}`;
  }, [project, app]);
  const found = polled.value.value;
  if (found === undefined)
    return polled.error.value ? <Problem error={polled.error.value} /> : <p class="empty">Loading…</p>;
  return (
    <>
      <header class="title">
        <h1>{app}</h1>
        <Status state={found.state} />
        <a href={hrefOf(project, ['runs'], { app })}>Runs</a>
      </header>
      <AppFacts project={project} app={found} />
      {found.reason !== undefined && <p class="problem message">{found.reason}</p>}
      <StartLog lines={found.start_log ?? []} />
      {stats.value.value !== undefined && (
        <section class="pane" aria-label="Numbers of the last 6 hours">
          <Numbers app={app} stats={stats.value.value} height={CHART_PX} />
        </section>
      )}
      {found.kind === 'server' && (
        <p class="quiet">
          The app is a web server. Its paths are below{' '}
          <code>
            /v4/{project}/{app}/
          </code>
          .
        </p>
      )}
      <Functions project={project} app={app} functions={found.functions} />
      {found.versions.length > 0 && (
        <Versions project={project} app={app} versions={found.versions} onChange={polled.refresh} />
      )}
      <Activations activations={found.activations} />
      {may('apps:write') && <Secrets project={project} app={app} />}
    </>
  );
}
