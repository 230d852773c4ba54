// The parameters of a call: a form from the function's schema, or raw JSON.
import { useSignal } from '@preact/signals';
import type { FunctionSpec } from '../api/api.ts';
import { bodyOf, hasFiles, type Values } from './body.ts';
import { Field } from './field.tsx';
import { initialValues, schemaOf } from './function-schema.ts';
import type { Schema } from './schema.ts';

interface ParameterFieldsProps {
  readonly spec: FunctionSpec;
  /** The parameters to begin with, as JSON text. */
  readonly first: string | undefined;
  readonly errors: ReadonlyMap<string, string>;
  /** Called with the body of the call, or with undefined if the raw JSON is wrong. */
  readonly onChange: (body: string | FormData | undefined) => void;
}

function parsed(text: string): Values | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Values) : undefined;
  } catch {
    return undefined;
  }
}

function Properties({
  schema,
  values,
  onChange,
  errors,
}: {
  readonly schema: Schema;
  readonly values: Values;
  readonly onChange: (values: Values) => void;
  readonly errors: ReadonlyMap<string, string>;
}) {
  const properties = Object.entries((schema.properties ?? {}) as Readonly<Record<string, Schema>>);
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  if (properties.length === 0) return <p class="empty">The function takes no parameters.</p>;
  return (
    <>
      {properties.map(([name, each]) => (
        <Field
          key={name}
          name={name}
          path={name}
          schema={each}
          root={schema}
          required={required.has(name)}
          value={values[name]}
          onChange={(value) => onChange({ ...values, [name]: value })}
          errors={errors}
        />
      ))}
    </>
  );
}

export function ParameterFields({ spec, first, errors, onChange }: ParameterFieldsProps) {
  const schema = schemaOf(spec);
  const values = useSignal<Values>(parsed(first ?? '') ?? initialValues(spec));
  const raw = useSignal<string | undefined>(undefined);
  /** Grows when other values fill the form, so that the fields begin anew. */
  const filled = useSignal(0);
  const change = (next: Values): void => {
    values.value = next;
    onChange(bodyOf(next));
  };
  const changeRaw = (text: string): void => {
    raw.value = text;
    const next = parsed(text);
    if (next !== undefined) values.value = next;
    // The text is sent as typed, because a number may have more digits than JavaScript keeps.
    onChange(next === undefined ? undefined : text);
  };
  const fill = (next: Values): void => {
    filled.value += 1;
    if (raw.value !== undefined) raw.value = JSON.stringify(next, null, 2);
    change(next);
  };
  const wrong = raw.value !== undefined && parsed(raw.value) === undefined;
  const files = hasFiles(values.value);
  return (
    <fieldset>
      <legend class="title">
        <span>Parameters</span>
        <label class="inline">
          <input
            type="checkbox"
            checked={raw.value !== undefined}
            disabled={wrong || files}
            onChange={(event) => {
              filled.value += 1;
              raw.value = event.currentTarget.checked ? JSON.stringify(values.value, null, 2) : undefined;
            }}
          />
          Raw JSON
        </label>
        {spec.examples?.map((example, at) => (
          <button key={JSON.stringify(example)} type="button" class="small" onClick={() => fill(example)}>
            Example {at + 1}
          </button>
        ))}
      </legend>
      {raw.value === undefined ? (
        <Properties key={filled.value} schema={schema} values={values.value} onChange={change} errors={errors} />
      ) : (
        <>
          <textarea
            aria-label="Parameters as JSON"
            aria-invalid={wrong}
            rows={12}
            spellcheck={false}
            value={raw.value}
            onInput={(event) => changeRaw(event.currentTarget.value)}
          />
          {wrong && <p class="wrong">The text is not a JSON object.</p>}
        </>
      )}
    </fieldset>
  );
}
