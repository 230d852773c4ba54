// The fields inside an object or a list.
import type { ComponentType } from 'preact';
import { type FieldProps, placeOf } from './field-props.ts';
import { type Control, initialOf, type Schema } from './schema.ts';

interface InnerProps extends FieldProps {
  readonly control: Extract<Control, { kind: 'object' | 'list' }>;
  /** The view of one value. Passed in, because the two files would import each other. */
  readonly field: ComponentType<FieldProps>;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function Inner({ control, ...props }: InnerProps) {
  return control.kind === 'object' ? (
    <ObjectFields {...props} properties={control.properties} needed={control.required} />
  ) : (
    <ListFields {...props} items={control.items} />
  );
}

type ObjectProps = Omit<InnerProps, 'control'> & {
  readonly properties: Readonly<Record<string, Schema>>;
  readonly needed: ReadonlySet<string>;
};

function ObjectFields({ properties, needed, field: Field, ...props }: ObjectProps) {
  const { name, path, root, required, value, onChange, errors, schema } = props;
  const record = isRecord(value) ? value : undefined;
  if (record === undefined)
    return (
      <button type="button" class="small" onClick={() => onChange(initialOf(schema, root) ?? {})}>
        Set {name}
      </button>
    );
  return (
    <div class="inner">
      {Object.entries(properties).map(([key, each]) => (
        <Field
          key={key}
          name={key}
          path={placeOf(path, key)}
          schema={each}
          root={root}
          required={needed.has(key)}
          value={record[key]}
          onChange={(next) => onChange({ ...record, [key]: next })}
          errors={errors}
        />
      ))}
      {!required && (
        <button type="button" class="small" onClick={() => onChange(undefined)}>
          Remove {name}
        </button>
      )}
    </div>
  );
}

function ListFields({ items, field: Field, ...props }: Omit<InnerProps, 'control'> & { readonly items: Schema }) {
  const { name, path, root, value, onChange, errors } = props;
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  return (
    <div class="inner">
      {list.map((each, at) => (
        // The key has the length of the list, so that fields behind a removed one take their new values.
        <div class="element" key={`${list.length} ${String(at)}`}>
          <Field
            name={`${name} ${at + 1}`}
            path={placeOf(path, at)}
            schema={items}
            root={root}
            required
            value={each}
            onChange={(next) => onChange(list.with(at, next))}
            errors={errors}
          />
          <button
            type="button"
            class="small"
            aria-label={`Remove ${name} ${at + 1}`}
            onClick={() => onChange(list.toSpliced(at, 1))}
          >
            Remove
          </button>
        </div>
      ))}
      <button type="button" class="small" onClick={() => onChange([...list, initialOf(items, root)])}>
        Add to {name}
      </button>
    </div>
  );
}
