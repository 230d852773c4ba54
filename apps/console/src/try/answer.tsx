// The answer of a call: status, headers, and the body by its type.
import { useMemo } from 'preact/hooks';
import { BytesResult } from '../components/bytes-result.tsx';
import { HeaderList } from '../components/header-list.tsx';
import { Items } from '../components/items.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { ErrorBox, Problem } from '../components/problem.tsx';
import { duration } from '../components/time.tsx';
import { hrefOf } from '../shell/route.ts';
import type { AnswerHead, CallWatch } from './call-watch.ts';

function Body({ bytes, head }: { readonly bytes: Uint8Array<ArrayBuffer>; readonly head: AnswerHead }) {
  const value = useMemo(() => {
    if (!head.type.startsWith('application/json')) return undefined;
    try {
      return JSON.parse(new TextDecoder().decode(bytes)) as unknown;
    } catch {
      return undefined;
    }
  }, [bytes, head]);
  if (value !== undefined) return <JsonTree value={value} />;
  return <BytesResult bytes={bytes} type={head.type} name={head.runId ?? 'answer'} />;
}

/** Whether a run of the answer can be looked up: calls that were refused have an id without a run. */
const hasRun = (watch: CallWatch, { status }: AnswerHead): boolean =>
  status < 400 || (watch.error.value !== undefined && ![400, 401, 403, 404, 413, 415, 422, 429].includes(status));

export function AnswerView({ project, watch }: { readonly project: string; readonly watch: CallWatch }) {
  const head = watch.head.value;
  const bytes = watch.bytes.value;
  const streams = head?.type.startsWith('text/event-stream');
  return (
    <section class="answer" aria-label="Answer">
      <p class="title" role="status">
        {head === undefined && watch.open.value && 'Waiting for the answer…'}
        {head && (
          <>
            <span class="status" data-tone={head.status < 400 ? 'good' : 'bad'}>
              {head.status}
            </span>
            <span class="quiet">{duration(head.tookMs)} to the head</span>
            {head.runId !== undefined && hasRun(watch, head) && (
              <a href={hrefOf(project, ['runs', head.runId])}>Open the run</a>
            )}
          </>
        )}
        {watch.open.value && (
          <button type="button" class="small" onClick={() => watch.stop()}>
            Disconnect
          </button>
        )}
        {!watch.open.value && streams && <span class="quiet">the stream ended</span>}
      </p>
      <Problem error={watch.failure.value} />
      {watch.error.value && <ErrorBox error={watch.error.value} title="Error of the call" />}
      {head && <HeaderList summary={`${head.headers.length} headers`} headers={head.headers} />}
      {streams && <Items log={watch.items} live={watch.open.value} />}
      {head && bytes !== undefined && bytes.length > 0 && watch.error.value === undefined && (
        <Body bytes={bytes} head={head} />
      )}
    </section>
  );
}
