// Functions with declared schemas.
import { z } from 'zod';

const Repeats = z.object({
  text: z
    .string()
    .trim()
    .refine((text) => text !== 'bad', 'never bad'),
  times: z.int().default(2),
  when: z.iso
    .date()
    .transform((text) => new Date(text))
    .optional(),
});

/** Repeats a text. */
export function* repeats({ text, times, when }: z.infer<typeof Repeats>) {
  for (let i = 0; i < times; i++) yield when === undefined ? text : `${text} ${when.getUTCFullYear()}`;
}
repeats.schema = Repeats;

export const strict = (params: object) => params;
strict.schema = z.strictObject({ a: z.strictObject({ b: z.number() }) });

export const checked = (params: object) => params;
/** A Standard Schema, version 1, whose check is asynchronous. */
checked.schema = {
  '~standard': {
    version: 1,
    vendor: 'own',
    validate: async (value: { n: unknown }) =>
      typeof value.n === 'number'
        ? { value: { n: value.n + 1 } }
        : { issues: [{ message: 'no number', path: [{ key: 'n' }] }] },
  },
};
