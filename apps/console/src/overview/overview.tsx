// The apps of a project at a glance: state, runs, and numbers of the last minutes.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type App, listApps } from '../api/api.ts';
import { usePolled } from '../api/polled.ts';
import { readStats, type Stats } from '../api/stats.ts';
import { Problem } from '../components/problem.tsx';
import { Status } from '../components/status.tsx';
import { hrefOf } from '../shell/route.ts';
import { Numbers } from './numbers.tsx';

const WINDOWS = [
  [3_600, 'last hour'],
  [21_600, 'last 6 hours'],
  [86_400, 'last day'],
] as const;

export function AppFacts({ project, app }: { readonly project: string; readonly app: App }) {
  const { version, runs, replicas } = app;
  const list = (status: string): string => hrefOf(project, ['runs'], { app: app.name, status });
  return (
    <p class="facts-line">
      {version !== undefined && <span class="mono">{version.slice(0, 12)}</span>}
      <span>
        {replicas.ready} of {replicas.desired} replicas ready
      </span>
      <a href={list('queued')}>{runs.queued.toLocaleString('en')} queued</a>
      <a href={list('running')}>{runs.running.toLocaleString('en')} running</a>
    </p>
  );
}

function AppCard({ project, app, stats }: { project: string; app: App; stats: Stats | undefined }) {
  const broken = app.state === 'broken';
  return (
    <li class="card pane">
      <header class="title">
        <h2>
          <a href={hrefOf(project, ['apps', app.name])}>{app.name}</a>
        </h2>
        <Status state={app.state} />
      </header>
      <AppFacts project={project} app={app} />
      {app.reason !== undefined && <p class={broken ? 'problem message' : 'quiet message'}>{app.reason}</p>}
      {broken && <a href={hrefOf(project, ['apps', app.name])}>Log of the last start</a>}
      {stats !== undefined && <Numbers app={app.name} stats={stats} />}
    </li>
  );
}

/** Broken apps first, then by name. */
const byUrgency = (one: App, other: App): number =>
  Number(other.state === 'broken') - Number(one.state === 'broken') || (one.name < other.name ? -1 : 1);

export function Overview({ project }: { readonly project: string }) {
  const windowS = useSignal<number>(WINDOWS[0][0]);
  const apps = usePolled(project, (signal) => listApps(project, signal));
  const stats = usePolled(`${project} ${windowS.value}`, (signal) => readStats(project, windowS.peek(), signal));
  useEffect(() => {
    document.title = `${project}: overview`;
  }, [project]);
  const found: readonly App[] | undefined = apps.value.value?.apps.toSorted(byUrgency);
  return (
    <>
      <header class="title">
        <h1>Overview</h1>
        {stats.value.value !== undefined && (
          <label class="inline">
            Numbers of the
            <select
              value={windowS.value}
              onChange={(event) => {
                windowS.value = Number(event.currentTarget.value);
              }}
            >
              {WINDOWS.map(([seconds, label]) => (
                <option key={seconds} value={seconds}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        )}
      </header>
      <Problem error={apps.error.value ?? stats.error.value} />
      {found === undefined && apps.error.value === undefined && <p class="empty">Loading…</p>}
      {found?.length === 0 && (
        <p class="empty">The project has no app yet. Deploy one, or add a folder to the worker.</p>
      )}
      <ul class="cards">
        {found?.map((app) => (
          <AppCard key={app.name} project={project} app={app} stats={stats.value.value} />
        ))}
      </ul>
    </>
  );
}
