// Calls a function from the console: a form from its schema, the options, and the answer as it arrives.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type App, type FunctionSpec, listApps } from '../api/api.ts';
import { pathOf, urlOfCall } from '../api/call.ts';
import { usePolled } from '../api/polled.ts';
import { Problem } from '../components/problem.tsx';
import { Status } from '../components/status.tsx';
import { may } from '../session/session.ts';
import { goTo, hrefOf } from '../shell/route.ts';
import { AnswerView } from './answer.tsx';
import { bodyOf, errorsByPlace } from './body.ts';
import { CallWatch } from './call-watch.ts';
import { draft } from './draft.ts';
import { ParameterFields } from './form.tsx';
import { initialValues } from './function-schema.ts';
import { type Mode, Options } from './options.tsx';

const APPS_EVERY_MS = 15_000;

function Choice({
  project,
  apps,
  app,
  fn,
}: {
  project: string;
  apps: readonly App[];
  app: string | undefined;
  fn: string | undefined;
}) {
  const value = app !== undefined && fn !== undefined ? `${app}/${fn}` : '';
  return (
    <label class="inline">
      Function
      <select
        value={value}
        onChange={(event) => goTo(hrefOf(project, ['try', ...event.currentTarget.value.split('/')]))}
      >
        <option value="">choose…</option>
        {apps.map(({ name, functions }) => (
          <optgroup key={name} label={name}>
            {functions.map((each) => (
              <option key={each.name} value={`${name}/${each.name}`}>
                {name}/{each.name}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

function CallForm({
  project,
  app,
  spec,
}: {
  readonly project: string;
  readonly app: string;
  readonly spec: FunctionSpec;
}) {
  const mode = useSignal<Mode>(spec.schema?.kind === 'stream' ? 'stream' : 'answer');
  const webhook = useSignal('');
  const secret = useSignal('');
  const watch = useSignal<CallWatch | undefined>(undefined);
  const given = draft.peek();
  const first = useSignal(given?.app === app && given.fn === spec.name ? given.body : undefined).value;
  const body = useSignal<string | FormData | undefined>(first ?? bodyOf(initialValues(spec)));
  useEffect(() => {
    draft.value = undefined;
    return () => watch.peek()?.stop();
  }, [watch]);
  const path = pathOf(project, app, spec.name);
  const options = {
    stream: mode.value === 'stream',
    async: mode.value === 'async',
    webhook: webhook.value,
    secret: secret.value,
  };
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    if (body.value === undefined) return;
    watch.peek()?.stop();
    watch.value = new CallWatch(path, body.value, options);
  };
  const details = watch.value?.error.value?.details ?? [];
  return (
    <div class="beside">
      <form class="pane call" onSubmit={onSubmit}>
        <header>
          <h2>
            {app}/{spec.name}
          </h2>
          <p class="quiet">{spec.schema?.summary ?? spec.doc}</p>
          {spec.schema?.description !== undefined && <p class="message quiet">{spec.schema.description}</p>}
          {spec.untyped !== undefined && <p class="quiet">No schema: {spec.untyped}</p>}
        </header>
        <ParameterFields
          spec={spec}
          first={first}
          errors={errorsByPlace(details)}
          onChange={(next) => {
            body.value = next;
          }}
        />
        <Options mode={mode} webhook={webhook} secret={secret} />
        <p class="buttons">
          <button type="submit" class="primary" disabled={body.value === undefined || !may('call')}>
            Call
          </button>
          <code class="quiet url">POST {urlOfCall(path, options)}</code>
        </p>
      </form>
      <section class="pane" aria-labelledby="answer-title">
        <h2 id="answer-title">Answer</h2>
        {watch.value === undefined ? (
          <p class="empty">The answer appears here, with its headers.</p>
        ) : (
          <AnswerView project={project} watch={watch.value} />
        )}
      </section>
    </div>
  );
}

export function Try({ project, app, fn }: { project: string; app: string | undefined; fn: string | undefined }) {
  const apps = usePolled(project, (signal) => listApps(project, signal), APPS_EVERY_MS);
  const list = apps.value.value?.apps ?? [];
  const found = list.find(({ name }) => name === app);
  const spec = found?.functions.find(({ name }) => name === fn);
  useEffect(() => {
    document.title = fn === undefined ? 'Try a function' : `Try ${app}/${fn}`;
  }, [app, fn]);
  return (
    <>
      <header class="title">
        <h1>Try a function</h1>
        <Choice project={project} apps={list} app={app} fn={fn} />
      </header>
      <Problem error={apps.error.value} />
      {found && found.state !== 'ready' && (
        <p class="title">
          The app is <Status state={found.state} /> {found.reason}
        </p>
      )}
      {fn !== undefined && apps.value.value !== undefined && spec === undefined && (
        <p class="empty">
          There is no function {app}/{fn}.
        </p>
      )}
      {spec && app !== undefined && <CallForm key={`${app}/${spec.name}`} project={project} app={app} spec={spec} />}
    </>
  );
}
