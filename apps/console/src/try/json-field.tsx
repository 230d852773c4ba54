// A value as JSON text, for schemas that no other control covers.
import { useState } from 'preact/hooks';

interface JsonFieldProps {
  readonly id: string;
  readonly 'aria-describedby': string;
  readonly 'aria-invalid': boolean;
  readonly placeholder: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

export function JsonField({ value, onChange, placeholder, ...attributes }: JsonFieldProps) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  const [plain, setPlain] = useState(false);
  return (
    <>
      <textarea
        {...attributes}
        rows={2}
        spellcheck={false}
        placeholder={placeholder || 'JSON, or a plain text'}
        value={text}
        onInput={(event) => {
          const typed = event.currentTarget.value;
          setText(typed);
          try {
            onChange(typed.trim() === '' ? undefined : (JSON.parse(typed) as unknown));
            setPlain(false);
          } catch {
            onChange(typed);
            setPlain(true);
          }
        }}
      />
      {plain && <p class="about">Sent as a text, because it is not JSON.</p>}
    </>
  );
}
