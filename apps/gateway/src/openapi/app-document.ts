// Contract 6: `GET /openapi/{project}/{app}.json`, the API of an app, from its announcement.
import type { AppDescription, FunctionSpec, JsonSchema, ParameterSpec } from '@inference-proxy/contracts';
import { ACCEPTED_RUN, answer, errors, json, OF_CALLS, openApi, parameter, ref } from './components.ts';
import { examplesOf } from './examples.ts';
import { hoisted } from './hoisted-schemas.ts';
import type { Json } from './json.ts';
import { CALL_OPTIONS } from './service-document.ts';

const FORMS = ['multipart/form-data', 'application/x-www-form-urlencoded'];
const ANY_METHOD = ['get', 'post', 'put', 'patch', 'delete'];

/** Returns the document of an app. */
export function appDocument(project: string, description: AppDescription): Json {
  const { app, version, kind } = description;
  const root = `/v4/${project}/${app}`;
  const schemas: Record<string, unknown> = {};
  const paths =
    kind === 'server'
      ? serverPaths(root, app)
      : Object.fromEntries(
          description.functions.map((spec) => [`${root}/${spec.name}`, { post: operation(spec, schemas, app) }]),
        );
  return openApi(
    {
      title: `${project}/${app}`,
      version,
      description: kind === 'server' ? 'An app that is a web server.' : 'The functions of an app.',
    },
    [{ name: app, description: kind === 'server' ? 'The paths of the server.' : 'The functions.' }],
    paths,
    schemas,
  );
}

/** @param schemas the document's schemas, to which those of this function are added */
function operation(spec: FunctionSpec, schemas: Record<string, unknown>, tag: string): Json {
  const { name, schema, doc } = spec;
  const own = (part: string, value: JsonSchema): Json => hoisted(value, `${name}.${part}`, schemas);
  const summary = schema?.summary ?? doc ?? `Calls ${name}`;
  const body = schema
    ? component(`${name}.parameters`, own('parameters', schema.parameters), schemas)
    : untypedParameters(spec);
  const examples = examplesOf(spec);
  const isStream = schema?.kind === 'stream';
  const item = schema?.item && own('item', schema.item);
  const result = isStream
    ? { type: 'array', description: 'All items, in order.', ...(item && { items: item }) }
    : schema?.returns && own('returns', schema.returns);
  return {
    operationId: name,
    tags: [tag],
    summary,
    ...(schema?.description !== undefined && { description: schema.description }),
    parameters: CALL_OPTIONS,
    requestBody: {
      required: isRequired(schema?.parameters ?? untypedParameters(spec)),
      content: {
        ...json(body, examples.length === 0 ? {} : { examples: named(examples) }),
        // The gateway reads the fields of a form by the schema, so an untyped function takes no form.
        ...(schema && Object.fromEntries(FORMS.map((type) => [type, { schema: body }]))),
      },
    },
    responses: {
      200: answer('The run succeeded.', {
        ...json(envelopeOf(result)),
        ...(spec.media !== undefined && { [spec.media]: { schema: BYTES } }),
        ...(isStream && { 'text/event-stream': streamOf(item) }),
      }),
      202: ACCEPTED_RUN,
      ...errors(...OF_CALLS),
      default: ref('responses', 'FunctionStatus'),
    },
  };
}

const BYTES: Json = { type: 'string', format: 'binary', description: 'The bytes that the function returns or yields.' };

/** Adds a schema to the document's schemas, and returns the reference to it. */
function component(name: string, value: Json, schemas: Record<string, unknown>): Json {
  schemas[name] = value;
  return ref('schemas', name);
}

const isRequired = ({ required }: JsonSchema): boolean => Array.isArray(required) && required.length > 0;

/** The stream of a generator: the data of each event is one item. */
const streamOf = (item: Json | undefined): Json => ({
  schema: item ?? { description: 'The data of each server-sent event is one item.' },
});

function envelopeOf(result: Json | undefined): Json {
  if (result === undefined) return ref('schemas', 'Envelope');
  return { allOf: [ref('schemas', 'Envelope'), { type: 'object', required: ['result'], properties: { result } }] };
}

/** Returns the schema of the parameters of a function without annotations, from its signature. */
function untypedParameters({ parameters, extra }: FunctionSpec): JsonSchema {
  const described = ({ annotation, ...spec }: ParameterSpec): Json => ({
    ...('default' in spec && { default: spec.default }),
    ...(annotation !== undefined && { description: `Annotated as \`${annotation}\`.` }),
  });
  return {
    type: 'object',
    properties: Object.fromEntries(parameters.map((spec) => [spec.name, described(spec)])),
    // The service fills in the id of the run.
    required: parameters.filter(({ name, required }) => required && name !== 'run_id').map(({ name }) => name),
    ...(!extra && { additionalProperties: false }),
  };
}

const named = (examples: readonly object[]): Json =>
  Object.fromEntries(examples.map((value, at) => [`example${at + 1}`, { value }]));

/** A server has its own documentation. Its paths are unknown here. */
function serverPaths(root: string, tag: string): Json {
  const path = {
    name: 'path',
    in: 'path',
    required: true,
    description: 'A path of the server.',
    schema: { type: 'string' },
  };
  const operations = ANY_METHOD.map((method) => [
    method,
    {
      operationId: `${method}Path`,
      tags: [tag],
      summary: `Forwards ${method.toUpperCase()} to the server`,
      parameters: [path, parameter('async'), parameter('webhookEndpoint'), parameter('onDisconnect')],
      responses: {
        200: { description: 'The answer of the server.', content: { '*/*': {} } },
        202: ACCEPTED_RUN,
        ...errors('unauthorized', 'forbidden', 'not_found', 'overloaded', 'upstream_unavailable', 'unavailable'),
        default: { description: 'The answer of the server.' },
      },
    },
  ]);
  return { [`${root}/{path}`]: Object.fromEntries(operations) };
}
