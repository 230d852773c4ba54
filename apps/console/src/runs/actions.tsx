// What a person can do with a run: cancel it, run it again, copy its call.
import { useSignal } from '@preact/signals';
import { cancelRun, type Run } from '../api/api.ts';
import { call, pathOf } from '../api/call.ts';
import type { Parameters } from '../api/parameters.ts';
import { errorOf } from '../api/request.ts';
import { Copy } from '../components/copy.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Problem } from '../components/problem.tsx';
import { may } from '../session/session.ts';
import { goTo, hrefOf } from '../shell/route.ts';
import { draft } from '../try/draft.ts';
import { LANGUAGES, snippet } from './snippets.ts';
import { hasEnded } from './watch.ts';

interface ActionsProps {
  readonly project: string;
  readonly run: Run;
  readonly parameters: Parameters | undefined;
  readonly onChange: () => void;
}

export function RunActions({ project, run, parameters, onChange }: ActionsProps) {
  const problem = useSignal<Error | undefined>(undefined);
  const copying = useSignal(false);
  const cancelling = useSignal(false);
  const tried = async (what: () => Promise<void>): Promise<void> => {
    problem.value = undefined;
    await what().catch((error: unknown) => {
      problem.value = error as Error;
    });
  };
  const cancel = (): Promise<void> =>
    tried(async () => {
      cancelling.value = true;
      await cancelRun(project, run.run_id).finally(() => {
        cancelling.value = false;
      });
      onChange();
    });
  const path = pathOf(project, run.app, run.function);
  const again = (body: string): Promise<void> =>
    tried(async () => {
      const answer = await call(path, body, { async: true });
      if (!answer.ok) throw await errorOf(answer);
      const { run_id: id } = (await answer.json()) as { run_id: string };
      goTo(hrefOf(project, ['runs', id]));
    });
  const edit = (body: string): void => {
    draft.value = { app: run.app, fn: run.function, body };
    goTo(hrefOf(project, ['try', run.app, run.function]));
  };
  const body = parameters?.form === 'json' ? parameters.text : undefined;
  return (
    <>
      <p class="buttons">
        {!hasEnded(run) && may('runs:write') && (
          <button type="button" class="danger" disabled={cancelling.value} onClick={() => void cancel()}>
            Cancel
          </button>
        )}
        {body !== undefined && may('call') && (
          <>
            <button type="button" onClick={() => void again(body)}>
              Run again
            </button>
            <button type="button" onClick={() => edit(body)}>
              Edit and run
            </button>
          </>
        )}
        {body !== undefined && (
          <button
            type="button"
            onClick={() => {
              copying.value = true;
            }}
          >
            Copy call…
          </button>
        )}
      </p>
      <Problem error={problem.value} />
      {copying.value && (
        <Dialog
          title="Copy the call"
          onClose={() => {
            copying.value = false;
          }}
        >
          {LANGUAGES.map((language) => {
            const call = { url: location.origin + path, body: body ?? '{}', stream: run.items > 0 };
            const text = snippet[language](call);
            return (
              <section key={language}>
                <p class="title">
                  <strong>{language}</strong> <Copy text={text} label={`Copy as ${language}`} />
                </p>
                {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a wide text. */}
                <pre class="snippet" tabIndex={0}>
                  {text}
                </pre>
              </section>
            );
          })}
        </Dialog>
      )}
    </>
  );
}
