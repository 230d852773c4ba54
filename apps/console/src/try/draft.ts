// The parameters that the next form begins with: those of a run that a person edits.
import { signal } from '@preact/signals';

export interface Draft {
  readonly app: string;
  readonly fn: string;
  /** JSON text. */
  readonly body: string;
}

export const draft = signal<Draft | undefined>(undefined);
