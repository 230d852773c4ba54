// Contract 1, "Parameters and types": checks the schemas that a function's process sends. An app can forge them.
import type { FunctionSchema, FunctionSpec } from '@inference-proxy/contracts';
import { z } from 'zod';

/** The largest size of an app's schemas together, in characters of JSON. */
const SCHEMAS_LIMIT = 256 * 1024;
const TEXT_LIMIT = 4_096;

const jsonSchema = z.record(z.string(), z.unknown());

const functionSchema = z.object({
  kind: z.enum(['value', 'stream']),
  summary: z.string().max(TEXT_LIMIT).optional(),
  description: z.string().max(TEXT_LIMIT).optional(),
  parameters: jsonSchema,
  returns: jsonSchema.optional(),
  item: jsonSchema.optional(),
});

/** A function as received. Only the form of its schema is not checked yet. */
export interface ReceivedFunction extends Omit<FunctionSpec, 'schema'> {
  readonly schema?: unknown;
}

/** Returns the functions with checked schemas. A function whose schema is malformed, or exceeds the bound of its app, is untyped. */
export function withBoundedSchemas(functions: readonly ReceivedFunction[]): FunctionSpec[] {
  let left = SCHEMAS_LIMIT;
  return functions.map(({ schema, ...fn }) => {
    if (schema === undefined) return fn;
    const checked = checkedSchema(schema, left);
    if (typeof checked === 'string') return { ...fn, untyped: checked };
    left -= checked.size;
    return { ...fn, schema: checked.schema };
  });
}

function checkedSchema(received: unknown, left: number): { schema: FunctionSchema; size: number } | string {
  const { success, data } = functionSchema.safeParse(received);
  if (!success) return 'its schema is malformed';
  try {
    const size = JSON.stringify(data).length;
    if (size > left) return `its schema exceeds the limit: the schemas of an app have at most ${SCHEMAS_LIMIT} bytes`;
    return { schema: data as FunctionSchema, size };
  } catch {
    return 'its schema is nested too deeply';
  }
}
