// A JSON value as a tree that folds. Each text is a text node, so markup in a value stays text.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

/** Children that open at once. A larger container opens in steps. */
const STEP = 100;
/** Containers with at most this many children are open at first. */
const OPEN_UP_TO = 20;
const LONG_TEXT = 300;

type Entries = readonly (readonly [string, unknown])[];

function Key({ name }: { readonly name: string | undefined }) {
  return name === undefined ? null : <span class="key">{name}: </span>;
}

function Leaf({ value }: { readonly value: unknown }) {
  const whole = useSignal(false);
  const text = JSON.stringify(value) ?? 'undefined';
  const kind = value === null ? 'null' : typeof value;
  if (text.length <= LONG_TEXT || whole.value) return <span data-kind={kind}>{text}</span>;
  return (
    <span data-kind={kind}>
      {text.slice(0, LONG_TEXT)}…{' '}
      <button
        type="button"
        class="link"
        onClick={() => {
          whole.value = true;
        }}
      >
        {(text.length - LONG_TEXT).toLocaleString('en')} more characters
      </button>
    </span>
  );
}

function Branch({
  name,
  entries,
  list,
  depth,
}: {
  name: string | undefined;
  entries: Entries;
  list: boolean;
  depth: number;
}) {
  const open = useSignal(depth === 0 || (depth < 3 && entries.length <= OPEN_UP_TO));
  const shown = useSignal(STEP);
  const kind = list ? `[${entries.length.toLocaleString('en')}]` : `{${entries.length.toLocaleString('en')}}`;
  const children: ComponentChildren = open.value && (
    <ul>
      {entries.slice(0, shown.value).map(([key, value]) => (
        <li key={key}>
          <Node name={key} value={value} depth={depth + 1} />
        </li>
      ))}
      {shown.value < entries.length && (
        <li>
          <button
            type="button"
            class="link"
            onClick={() => {
              shown.value += STEP * 10;
            }}
          >
            {(entries.length - shown.value).toLocaleString('en')} more
          </button>
        </li>
      )}
    </ul>
  );
  return (
    <details
      open={open.value}
      onToggle={(event) => {
        open.value = event.currentTarget.open;
      }}
    >
      <summary>
        <Key name={name} />
        <span class="count">{kind}</span>
      </summary>
      {children}
    </details>
  );
}

function Node({ name, value, depth }: { name: string | undefined; value: unknown; depth: number }) {
  if (typeof value === 'object' && value !== null) {
    const list = Array.isArray(value);
    const entries: Entries = list ? value.map((one, at) => [String(at), one] as const) : Object.entries(value);
    if (entries.length > 0) return <Branch name={name} entries={entries} list={list} depth={depth} />;
  }
  return (
    <div class="leaf">
      <Key name={name} />
      <Leaf value={value} />
    </div>
  );
}

export function JsonTree({ value }: { readonly value: unknown }) {
  return (
    <div class="json">
      <Node name={undefined} value={value} depth={0} />
    </div>
  );
}
