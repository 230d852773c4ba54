// Functions whose parameters are declared with the libraries of Standard Schema.
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';

interface Order {
  readonly item: string;
  readonly count: number;
  readonly note?: string | undefined;
}

const order = ({ item, count, note }: Order) => [item, count, note ?? null];

export const zod = (params: Order) => order(params);
zod.schema = z.strictObject({
  item: z.string().trim().min(1),
  count: z.int().default(2),
  note: z.string().optional(),
});

export const arktype = (params: Order) => order(params);
arktype.schema = type({
  '+': 'reject',
  item: 'string.trim |> string >= 1',
  count: 'number.integer = 2',
  'note?': 'string',
});

const Valibot = v.strictObject({
  item: v.pipe(v.string(), v.minLength(1)),
  count: v.optional(v.pipe(v.number(), v.integer()), 2),
  note: v.optional(v.string()),
});

/** A package of Valibot's own converts its schemas to JSON Schema. */
export const valibot = (params: Order) => order(params);
valibot.schema = toStandardJsonSchema(Valibot);

/** Without the package, only the process checks the values. */
export const plain_valibot = (params: Order) => order(params);
plain_valibot.schema = Valibot;

/** The package cannot convert `trim`. */
export const trimmed_valibot = ({ item }: { item: string }) => item;
trimmed_valibot.schema = toStandardJsonSchema(v.object({ item: v.pipe(v.string(), v.trim()) }));

export const reads_files = async ({ image, pages }: { image: File; pages: readonly File[] }) => [
  [image.name, image.type, await image.text()],
  await Promise.all(pages.map((page) => page.text())),
];
reads_files.schema = z.strictObject({ image: z.file().mime('text/plain').max(10), pages: z.array(z.file()) });
