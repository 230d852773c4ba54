// The schema of a function's parameters. A function without a schema gets one from its parameters' names.
import type { FunctionSpec } from '../api/api.ts';
import type { Values } from './body.ts';
import { initialOf, isSchema, type Schema } from './schema.ts';

export function schemaOf({ schema, parameters }: FunctionSpec): Schema {
  if (isSchema(schema?.parameters)) return schema.parameters;
  const properties = parameters.map(({ name, annotation, default: standard, required }) => [
    name,
    {
      ...(annotation !== undefined && { description: annotation }),
      ...(!required && standard !== undefined && { default: standard }),
    },
  ]);
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  };
}

/** Returns the values with which the form of a function begins. */
export function initialValues(spec: FunctionSpec): Values {
  const schema = schemaOf(spec);
  return (initialOf(schema, schema) ?? {}) as Values;
}
