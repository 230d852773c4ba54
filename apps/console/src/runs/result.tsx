// The result of a run: a JSON tree, or the form of its media type. Text is never markup.
import { useMemo } from 'preact/hooks';
import type { Run } from '../api/api.ts';
import { BytesResult, isText } from '../components/bytes-result.tsx';
import { Copy } from '../components/copy.tsx';
import { JsonTree } from '../components/json-tree.tsx';

/** Returns the bytes of a result of a media type: text types arrive as text, others in base64. */
function bytesOf(text: string, type: string): Uint8Array<ArrayBuffer> {
  try {
    if (!isText(type)) return Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  } catch {
    // The text is not base64, so it is the body itself.
  }
  return new TextEncoder().encode(text);
}

export function Result({ run }: { readonly run: Pick<Run, 'run_id' | 'result' | 'content_type'> }) {
  const { result, content_type: type } = run;
  const bytes = useMemo(
    () => (typeof result === 'string' && type !== undefined ? bytesOf(result, type) : undefined),
    [result, type],
  );
  const text = typeof result === 'string' ? result : JSON.stringify(result, null, 2);
  return (
    <section class="pane" aria-labelledby="result-title">
      <header class="title">
        <h2 id="result-title">Result</h2>
        <Copy text={text} label="Copy the result" />
      </header>
      {bytes !== undefined && type !== undefined ? (
        <BytesResult bytes={bytes} type={type} name={run.run_id} />
      ) : typeof result === 'string' && result.includes('\n') ? (
        <pre>{result}</pre>
      ) : (
        <JsonTree value={result} />
      )}
    </section>
  );
}
