// The frame of the console: project, views, theme, and the view of the address.
import { useEffect, useRef } from 'preact/hooks';
import { AppPage } from '../apps/page.tsx';
import { Webhooks } from '../deliveries/list.tsx';
import { Overview } from '../overview/overview.tsx';
import { Runs } from '../runs/list.tsx';
import { RunPage } from '../runs/page.tsx';
import { ChooseProject } from '../session/choose-project.tsx';
import { projects, signOut, token } from '../session/session.ts';
import { SignIn } from '../session/sign-in.tsx';
import { Try } from '../try/try.tsx';
import { ConnectionBanner } from './banner.tsx';
import { goTo, hrefOf, route } from './route.ts';
import { nextTheme, theme } from './theme.ts';

const VIEWS = [
  ['overview', 'Overview'],
  ['runs', 'Runs'],
  ['try', 'Try'],
  ['webhooks', 'Webhooks'],
] as const;

/** Views that belong to an entry of the navigation. */
const SECTION: Readonly<Record<string, string>> = { apps: 'overview' };

function View({ project }: { readonly project: string }) {
  const { view, rest } = route.value;
  const [first, second] = rest;
  if (view === 'overview') return <Overview project={project} />;
  if (view === 'runs')
    return first === undefined ? <Runs project={project} /> : <RunPage key={first} project={project} runId={first} />;
  if (view === 'try') return <Try project={project} app={first} fn={second} />;
  if (view === 'webhooks') return <Webhooks project={project} />;
  if (view === 'apps' && first !== undefined) return <AppPage key={first} project={project} app={first} />;
  return <p class="empty">There is no view at this address.</p>;
}

function ProjectChoice({ project }: { readonly project: string }) {
  if (projects.value.length < 2)
    return projects.value.length === 1 ? (
      <strong>{project}</strong>
    ) : (
      <a href="#/" title="Choose another project">
        {project}
      </a>
    );
  return (
    <select aria-label="Project" value={project} onChange={(event) => goTo(hrefOf(event.currentTarget.value))}>
      {projects.value.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

function Head({ project }: { readonly project: string | undefined }) {
  const { view } = route.value;
  return (
    <header class="head">
      <span class="brand">inference-proxy</span>
      {token.value !== undefined && project !== undefined && (
        <>
          <ProjectChoice project={project} />
          <nav aria-label="Views">
            {VIEWS.map(([name, label]) => (
              <a
                key={name}
                href={hrefOf(project, name === 'overview' ? [] : [name])}
                aria-current={(SECTION[view] ?? view) === name ? 'page' : undefined}
              >
                {label}
              </a>
            ))}
          </nav>
        </>
      )}
      <span class="end">
        <button type="button" class="small" onClick={nextTheme}>
          Theme: {theme.value === 'system' ? 'auto' : theme.value}
        </button>
        {token.value !== undefined && (
          <button type="button" class="small" onClick={() => signOut()}>
            Sign out
          </button>
        )}
      </span>
    </header>
  );
}

export function Console() {
  const { project, view, rest } = route.value;
  const main = useRef<HTMLElement>(null);
  const only = projects.value.length === 1 ? projects.value[0] : undefined;
  useEffect(() => {
    if (project === undefined && only !== undefined) location.replace(hrefOf(only));
  }, [project, only]);
  // A choice of another function keeps the focus on the choice.
  const place = [project, view, ...(view === 'try' ? [] : rest)].join('/');
  const before = useRef(place);
  useEffect(() => {
    // A new view begins at its top, for eyes and for screen readers.
    if (before.current !== place) {
      scrollTo(0, 0);
      main.current?.focus({ preventScroll: true });
    }
    before.current = place;
  }, [place]);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <Head project={project} />
      <ConnectionBanner />
      <main id="main" ref={main} tabIndex={-1}>
        {token.value === undefined ? (
          <SignIn />
        ) : project === undefined ? (
          <ChooseProject />
        ) : (
          <View key={project} project={project} />
        )}
      </main>
    </>
  );
}
