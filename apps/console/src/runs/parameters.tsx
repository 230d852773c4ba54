// The parameters of a run. Large parameters are folded.
import { useMemo } from 'preact/hooks';
import type { Parameters } from '../api/parameters.ts';
import { Copy } from '../components/copy.tsx';
import { JsonTree } from '../components/json-tree.tsx';

const FOLDED_FROM = 2_000;

const TITLES: Readonly<Record<string, string>> = { request: 'Request', files: 'Parameters with files' };

export function ParametersView({ parameters }: { readonly parameters: Parameters }) {
  const { text, form } = parameters;
  const value = useMemo(() => JSON.parse(text) as unknown, [text]);
  return (
    <section class="pane" aria-labelledby="parameters-title">
      <header class="title">
        <h2 id="parameters-title">{TITLES[form] ?? 'Parameters'}</h2>
        <Copy text={text} label="Copy the parameters" />
      </header>
      <details open={text.length < FOLDED_FROM}>
        <summary>{text.length.toLocaleString('en')} characters</summary>
        <JsonTree value={value} />
      </details>
    </section>
  );
}
