// What a field of the form gets.
import type { Schema } from './schema.ts';

export interface FieldProps {
  readonly name: string;
  /** The place of the value, such as `items.0.name`. */
  readonly path: string;
  readonly schema: Schema;
  readonly root: Schema;
  readonly required: boolean;
  /** Undefined: the value is not sent. */
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  /** By place: the messages of the last answer. */
  readonly errors: ReadonlyMap<string, string>;
}

/** Returns the place of a member, such as `items.0`. The values of the form themselves have the place ``. */
export const placeOf = (path: string, key: string | number): string => (path === '' ? String(key) : `${path}.${key}`);
