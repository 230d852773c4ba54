// OpenAPI 3.1 and JSON Schema: the smallest parts of documents.

/** A JSON value of a document. */
export type Json = { readonly [member: string]: unknown };

export const RUN_ID = { type: 'string', format: 'uuid', example: '01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17' };
export const TEXT = { type: 'string' };
export const TIME = { type: 'string', format: 'date-time' };
export const COUNT = { type: 'integer' };

/** Returns a reference to a schema of the document. */
export const schema = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

export const list = (items: Json): Json => ({ type: 'array', items });

/** Returns an object. @param properties required members */
export const object = (properties: Json, optional: Json = {}): Json => ({
  type: 'object',
  required: Object.keys(properties),
  properties: { ...properties, ...optional },
});
