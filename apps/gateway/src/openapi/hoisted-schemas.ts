// OpenAPI 3.1: local references of a function's schema point into the whole document, so its definitions move to the components.
import type { JsonSchema } from '@inference-proxy/contracts';
import type { Json } from './json.ts';

/** Characters that a component's name may not contain. */
const FOREIGN = /[^A-Za-z0-9._-]/g;
/** Keywords whose members are values of the author, not schemas. */
const VALUES = new Set(['default', 'const', 'enum', 'examples', 'example']);

/**
 * Returns the schema with its references changed to components.
 *
 * @param prefix makes the names of the components unique in the document
 * @param schemas the document's schemas, to which the definitions are added
 */
export function hoisted(schema: JsonSchema, prefix: string, schemas: Record<string, unknown>): Json {
  const { $defs = {}, ...body } = schema;
  const moved = (name: string): string => `${prefix}.${name}`.replace(FOREIGN, '_');
  const rewritten = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rewritten);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        if (name === '$ref' && typeof member === 'string') return [name, component(member)];
        return [name, VALUES.has(name) ? member : rewritten(member)];
      }),
    );
  };
  const component = (reference: string): string => {
    const [, name] = /^#\/\$defs\/([^/]+)$/.exec(reference) ?? [];
    return name === undefined ? reference : `#/components/schemas/${moved(unescaped(name))}`;
  };
  for (const [name, definition] of Object.entries($defs as Json)) schemas[moved(name)] = rewritten(definition);
  return rewritten(body) as Json;
}

const unescaped = (name: string): string => name.replaceAll('~1', '/').replaceAll('~0', '~');
