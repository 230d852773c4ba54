// One value of the form, by its schema. Fields of objects and lists contain fields.
import { useSignal } from '@preact/signals';
import { useId, useState } from 'preact/hooks';
import type { FieldProps } from './field-props.ts';
import { Inner } from './inner-fields.tsx';
import { JsonField } from './json-field.tsx';
import { branchName, type FieldShape, fits, initialOf, type Schema, shapeOf } from './schema.ts';

interface ControlProps extends FieldProps {
  readonly shape: FieldShape;
  readonly id: string;
}

/** The attributes that connect a control with its description and its error. */
const described = ({ id, path, errors }: ControlProps) => ({
  id,
  'aria-describedby': `${id}-about`,
  'aria-invalid': errors.has(path),
});

const placeholder = ({ shape }: ControlProps): string =>
  shape.defaultText === undefined ? '' : `default: ${shape.defaultText}`;

function TextControl(props: ControlProps) {
  const { value, onChange, required, shape } = props;
  return (
    <textarea
      {...described(props)}
      class="text"
      rows={1}
      placeholder={placeholder(props)}
      value={typeof value === 'string' ? value : ''}
      onInput={(event) => {
        const text = event.currentTarget.value;
        // An empty field of an optional parameter sends nothing, so the function's default applies.
        onChange(text === '' && (!required || shape.nullable) ? undefined : text);
      }}
    />
  );
}

function DateControl(props: ControlProps) {
  const { value, onChange } = props;
  return (
    <input
      {...described(props)}
      type="date"
      value={typeof value === 'string' ? value : ''}
      onInput={(event) => onChange(event.currentTarget.value || undefined)}
    />
  );
}

/** Keeps a text that is no number, so the gateway's message appears at the field. */
function NumberControl(props: ControlProps) {
  const { value, onChange } = props;
  const [text, setText] = useState(value === undefined ? '' : String(value));
  return (
    <input
      {...described(props)}
      inputMode="decimal"
      placeholder={placeholder(props)}
      value={text}
      onInput={(event) => {
        const typed = event.currentTarget.value;
        setText(typed);
        const number = Number(typed);
        onChange(typed.trim() === '' ? undefined : Number.isNaN(number) ? typed : number);
      }}
    />
  );
}

function ChoiceControl(props: ControlProps & { readonly values: readonly unknown[] }) {
  const { value, values, onChange, required, shape } = props;
  const chosen = values.findIndex((each) => JSON.stringify(each) === JSON.stringify(value));
  return (
    <select
      {...described(props)}
      value={String(chosen)}
      onChange={(event) => onChange(values[Number(event.currentTarget.value)])}
    >
      <option value="-1">{required ? 'choose…' : (shape.defaultText && placeholder(props)) || 'not sent'}</option>
      {values.map((each, at) => (
        <option key={JSON.stringify(each)} value={String(at)}>
          {typeof each === 'string' ? each : JSON.stringify(each)}
        </option>
      ))}
    </select>
  );
}

function FileControl(props: ControlProps & { readonly multiple: boolean }) {
  return (
    <input
      {...described(props)}
      type="file"
      multiple={props.multiple}
      onChange={(event) => {
        const files = [...(event.currentTarget.files ?? [])];
        props.onChange(files.length === 0 ? undefined : props.multiple ? files : files[0]);
      }}
    />
  );
}

function UnionControl(props: ControlProps & { readonly branches: readonly Schema[] }) {
  const { branches, value, onChange, root, id } = props;
  const branch = useSignal(
    Math.max(
      0,
      branches.findIndex((each) => fits(value, each)),
    ),
  );
  const schema = branches[branch.value] as Schema;
  return (
    <>
      <select
        aria-label={`Form of ${props.name}`}
        value={String(branch.value)}
        onChange={(event) => {
          branch.value = Number(event.currentTarget.value);
          onChange(initialOf(branches[branch.value] as Schema, root));
        }}
      >
        {branches.map((each, at) => (
          <option key={branchName(each)} value={String(at)}>
            {branchName(each)}
          </option>
        ))}
      </select>
      <AnyControl key={branch.value} {...props} schema={schema} shape={shapeOf(schema, root)} id={id} />
    </>
  );
}

function AnyControl(props: ControlProps) {
  const { control } = props.shape;
  switch (control.kind) {
    case 'text':
      return <TextControl {...props} />;
    case 'date':
      return <DateControl {...props} />;
    case 'number':
      return <NumberControl {...props} />;
    case 'boolean':
      return <ChoiceControl {...props} values={[true, false]} />;
    case 'choice':
      return <ChoiceControl {...props} values={control.values} />;
    case 'file':
    case 'files':
      return <FileControl {...props} multiple={control.kind === 'files'} />;
    case 'union':
      return <UnionControl {...props} branches={control.branches} />;
    case 'object':
    case 'list':
      return <Inner {...props} control={control} field={Field} />;
    case 'null':
      return <ChoiceControl {...props} values={[null]} />;
    case 'json':
      return (
        <JsonField
          {...described(props)}
          value={props.value}
          onChange={props.onChange}
          placeholder={placeholder(props)}
        />
      );
  }
}

const GROUPS = new Set(['object', 'list']);
/** Controls with the default as their placeholder. */
const SHOWS_DEFAULT = new Set(['text', 'number', 'boolean', 'choice', 'json']);

export function Field(props: FieldProps) {
  const { name, path, schema, root, required, value, onChange, errors } = props;
  const id = useId();
  const shape = shapeOf(schema, root);
  const { description, limits, nullable, control, defaultText } = shape;
  const error = errors.get(path);
  const isNull = value === null && control.kind !== 'null';
  const about = [
    description,
    limits && `${limits}.`,
    !SHOWS_DEFAULT.has(control.kind) && defaultText !== undefined && `Default: ${defaultText}.`,
  ];
  const group = GROUPS.has(control.kind);
  const Name = group ? 'span' : 'label';
  const Frame = group ? 'fieldset' : 'div';
  return (
    <Frame class="field" {...(group && { 'aria-labelledby': `${id}-name` })}>
      <p class="title">
        <Name {...(group ? {} : { for: id })} id={`${id}-name`} class="field-name">
          {name}
        </Name>
        {required && <span class="required">required</span>}
        {nullable && (required || value !== undefined) && (
          <label class="inline">
            <input
              type="checkbox"
              checked={isNull}
              onChange={(event) => onChange(event.currentTarget.checked ? null : undefined)}
            />
            null
          </label>
        )}
      </p>
      <p id={`${id}-about`} class="about">
        {about.filter(Boolean).join(' ')} {error !== undefined && <strong class="wrong">{error}</strong>}
      </p>
      {!isNull && <AnyControl {...props} shape={shape} id={id} />}
    </Frame>
  );
}
