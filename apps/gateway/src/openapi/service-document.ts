// Contract 6: `GET /openapi.json`, the API of the service. `service-document.test.ts` compares it with the routes.
import { ACCEPTED_RUN, answer, COMMON, errors, json, OF_CALLS, openApi, parameter, ref } from './components.ts';
import { COUNT, type Json, object, TEXT } from './json.ts';
import { receiverPaths } from './receiver-paths.ts';
import { statsPaths } from './stats-paths.ts';
import { versionPaths } from './version-paths.ts';

const PUBLIC = { security: [] };
const AN_OBJECT = { type: 'object' };
const RUN = ref('schemas', 'Run');

const names = (...each: readonly string[]): Json[] => each.map(parameter);
const ofProject = (...more: readonly string[]): Json[] => names('project', ...more);
const ofRun = (...more: readonly string[]): Json[] => names('project', 'run', ...more);

interface Operation {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly parameters?: readonly Json[];
  readonly requestBody?: Json;
  readonly responses: Json;
  readonly security?: readonly never[];
}

const page = (name: string, item: Json): Json => ({
  type: 'object',
  required: [name],
  properties: { [name]: { type: 'array', items: item }, cursor: { type: 'string' } },
});

const events = { 'text/event-stream': { schema: { description: 'Server-sent events.' } } };

/** Options of a call. */
export const CALL_OPTIONS = names(
  'async',
  'ids',
  'events',
  'webhookEndpoint',
  'onDisconnect',
  'prefer',
  'idempotencyKey',
  'webhookSecret',
);

const call = (summary: string, more: Partial<Operation> & Pick<Operation, 'responses'>): Operation => ({
  tags: ['calls'],
  summary,
  parameters: [...names('project', 'app', 'function'), ...CALL_OPTIONS],
  requestBody: { content: json(AN_OBJECT) },
  ...more,
});

const openAi = (summary: string): Operation => ({
  ...call(summary, {
    responses: {
      200: answer('The bare result of the function.', { ...json({}), ...events }),
      202: ACCEPTED_RUN,
      ...errors(...OF_CALLS),
      default: ref('responses', 'FunctionStatus'),
    },
  }),
  tags: ['OpenAI clients'],
});

const LIST = { type: 'array', items: AN_OBJECT };
const HEALTH = object({ status: TEXT });
const WEBHOOK_KEYS = object({ keys: { type: 'array', items: object({ id: TEXT, key: TEXT }) } });
const MODEL = object({ id: TEXT, object: TEXT, created: COUNT, owned_by: TEXT });
const document = (): Json => ({ 200: answer('An OpenAPI 3.1 document.', json(AN_OBJECT)) });

const FUNCTION = '/v4/{project}/{app}/{function}';
const RUNS = '/v4/{project}/runs';
const DELIVERIES = '/v4/{project}/deliveries';
const TOKENS = '/v4/{project}/tokens';

const get = (operationId: string, operation: Operation): Json => ({ get: { operationId, ...operation } });
const post = (operationId: string, operation: Operation): Json => ({ post: { operationId, ...operation } });

const FILTERS = names('filterDelivery', 'host', 'since', 'until', 'limit', 'cursor');

/** The paths of the service, by path and method. */
export const servicePaths: Json = {
  '/healthz': get('alive', {
    tags: ['operation'],
    summary: 'Reports that the process is alive',
    ...PUBLIC,
    responses: { 200: answer('The process is alive.', json(HEALTH)), ...errors('unavailable') },
  }),
  '/readyz': get('ready', {
    tags: ['operation'],
    summary: 'Reports whether the gateway can serve',
    ...PUBLIC,
    responses: { 200: answer('The gateway can serve.', json(HEALTH)), ...errors('unavailable') },
  }),
  '/.well-known/webhook-keys': get('listWebhookKeys', {
    tags: ['deliveries'],
    summary: 'Lists the public keys that verify the signature v1a of deliveries',
    ...PUBLIC,
    responses: { 200: answer('The keys, newest first.', json(WEBHOOK_KEYS)), ...errors('unavailable') },
  }),
  '/openapi.json': get('serviceDocument', {
    tags: ['documents'],
    summary: 'Returns this document',
    ...PUBLIC,
    responses: document(),
  }),
  '/openapi/{project}/{app}.json': get('appDocument', {
    tags: ['documents'],
    summary: 'Returns the document of an app',
    parameters: names('project', 'app'),
    responses: { ...document(), ...errors(...COMMON) },
  }),
  '/v4/{project}': get('listApps', {
    tags: ['apps'],
    summary: 'Lists the apps of a project, and their functions',
    parameters: ofProject(),
    responses: {
      200: answer('The apps.', json(object({ project: TEXT, apps: LIST }))),
      ...errors(...COMMON),
    },
  }),
  ...versionPaths,
  ...statsPaths,
  ...receiverPaths,
  [FUNCTION]: post(
    'call',
    call('Calls a function', {
      responses: {
        200: answer('The result.', { ...json(ref('schemas', 'Envelope')), ...events }),
        202: ACCEPTED_RUN,
        ...errors(...OF_CALLS),
        default: ref('responses', 'FunctionStatus'),
      },
    }),
  ),
  [`${FUNCTION}/chat/completions`]: post('chat', openAi('Calls a function as a chat')),
  [`${FUNCTION}/completions`]: post('complete', openAi('Calls a function as a completion')),
  [`${FUNCTION}/embeddings`]: post('embed', openAi('Calls a function as embeddings')),
  [`${FUNCTION}/responses`]: post('respond', openAi('Calls a function as a response')),
  [`${FUNCTION}/models`]: get('listModels', {
    tags: ['OpenAI clients'],
    summary: 'Lists the function as a model',
    parameters: names('project', 'app', 'function'),
    responses: {
      200: answer('The model.', json(object({ object: TEXT, data: { type: 'array', items: MODEL } }))),
      ...errors(...COMMON),
    },
  }),
  [`${FUNCTION}/models/{model}`]: get('describeModel', {
    tags: ['OpenAI clients'],
    summary: 'Describes the function as a model',
    parameters: names('project', 'app', 'function', 'model'),
    responses: { 200: answer('The model.', json(MODEL)), ...errors(...COMMON) },
  }),
  [RUNS]: get('listRuns', {
    tags: ['runs'],
    summary: 'Lists runs, newest first',
    parameters: ofProject(
      'filterApp',
      'filterFunction',
      'filterStatus',
      'filterWebhook',
      'since',
      'until',
      'limit',
      'cursor',
    ),
    responses: { 200: answer('A page of runs.', json(page('runs', RUN))), ...errors(...COMMON, 'invalid_request') },
  }),
  [`${RUNS}/{run}`]: get('lookUpRun', {
    tags: ['runs'],
    summary: 'Returns one run',
    parameters: ofRun(),
    responses: { 200: answer('The run.', json(RUN)), ...errors(...COMMON) },
  }),
  [`${RUNS}/{run}/stream`]: get('resumeStream', {
    tags: ['runs'],
    summary: 'Streams the items of a run',
    parameters: ofRun('events', 'ids', 'after', 'lastEventId', 'lastEventIdHeader'),
    responses: {
      200: answer('The items after the event.', events),
      204: answer('No event follows.'),
      ...errors(...COMMON, 'invalid_request', 'items_gone'),
      default: ref('responses', 'FunctionStatus'),
    },
  }),
  [`${RUNS}/{run}/parameters`]: get('readParameters', {
    tags: ['runs'],
    summary: 'Returns the parameters of a run’s call',
    parameters: ofRun(),
    responses: { 200: answer('The parameters, as received.', json(AN_OBJECT)), ...errors(...COMMON) },
  }),
  [`${RUNS}/{run}/logs`]: get('readLogs', {
    tags: ['runs'],
    summary: 'Returns the lines that a run printed or logged',
    parameters: ofRun('follow', 'events', 'after', 'lastEventId', 'lastEventIdHeader'),
    responses: {
      200: answer('The lines.', {
        ...json(
          object({
            run_id: TEXT,
            ended: { type: 'boolean' },
            cut: COUNT,
            logs: { type: 'array', items: ref('schemas', 'LogLine') },
          }),
        ),
        ...events,
      }),
      204: answer('No line follows.'),
      ...errors(...COMMON, 'invalid_request'),
    },
  }),
  [`${RUNS}/{run}/cancel`]: post('cancelRun', {
    tags: ['runs'],
    summary: 'Cancels a run',
    parameters: ofRun(),
    responses: {
      202: answer('The cancel was requested.', json(object({ run_id: TEXT, status: TEXT }))),
      ...errors(...COMMON, 'conflict'),
    },
  }),
  [`${RUNS}/{run}/deliveries`]: get('listDeliveriesOfRun', {
    tags: ['deliveries'],
    summary: 'Returns the deliveries of a run, with every attempt',
    parameters: ofRun(),
    responses: {
      200: answer('The deliveries.', json(page('deliveries', ref('schemas', 'Delivery')))),
      ...errors(...COMMON),
    },
  }),
  [`${RUNS}/{run}/deliveries/{delivery}/redeliver`]: post('redeliver', {
    tags: ['deliveries'],
    summary: 'Sends a delivery again',
    parameters: ofRun('delivery'),
    responses: {
      202: answer('The redelivery was requested.', json(object({ run_id: TEXT, delivery_id: TEXT, status: TEXT }))),
      ...errors(...COMMON, 'conflict'),
    },
  }),
  [DELIVERIES]: get('listDeliveries', {
    tags: ['deliveries'],
    summary: 'Lists deliveries, newest first',
    parameters: [parameter('project'), ...FILTERS],
    responses: {
      200: answer('A page of deliveries.', json(page('deliveries', ref('schemas', 'Delivery')))),
      ...errors(...COMMON, 'invalid_request'),
    },
  }),
  [`${DELIVERIES}/count`]: get('countDeliveries', {
    tags: ['deliveries'],
    summary: 'Counts deliveries',
    parameters: [parameter('project'), ...FILTERS],
    responses: {
      200: answer('The number.', json({ ...object({ count: COUNT }), properties: { count: COUNT, cursor: TEXT } })),
      ...errors(...COMMON, 'invalid_request'),
    },
  }),
  [`${DELIVERIES}/redeliver`]: post('redeliverAll', {
    tags: ['deliveries'],
    summary: 'Sends the matching deliveries again',
    parameters: [parameter('project'), ...FILTERS],
    responses: {
      202: answer('The numbers.', json(object({ redelivered: COUNT, under_way: COUNT }))),
      ...errors(...COMMON, 'invalid_request'),
    },
  }),
  [TOKENS]: {
    delete: {
      operationId: 'revokeTokensOfSubject',
      tags: ['tokens'],
      summary: 'Revokes the tokens of a subject',
      parameters: [parameter('project'), required('sub'), parameter('exp')],
      responses: { 204: answer('The tokens are revoked.'), ...errors(...COMMON, 'invalid_request') },
    },
  },
  [`${TOKENS}/{jti}`]: {
    delete: {
      operationId: 'revokeToken',
      tags: ['tokens'],
      summary: 'Revokes a token',
      parameters: ofProject('jti', 'exp'),
      responses: { 204: answer('The token is revoked.'), ...errors(...COMMON, 'invalid_request') },
    },
  },
};

/** Returns a query parameter that must be sent. */
function required(name: string): Json {
  return {
    name,
    in: 'query',
    required: true,
    description: 'The subject of the tokens.',
    schema: { type: 'string', minLength: 1, maxLength: 256 },
  };
}

const TAGS = [
  { name: 'calls', description: 'Calls of functions. An app’s own document describes its functions.' },
  { name: 'OpenAI clients', description: 'Functions as the base URL of an OpenAI client.' },
  { name: 'runs', description: 'Look-up, stream, logs and cancel of runs.' },
  { name: 'deliveries', description: 'Webhook deliveries.' },
  { name: 'apps', description: 'The apps of a project.' },
  { name: 'tokens', description: 'Revocation of tokens.' },
  { name: 'documents', description: 'OpenAPI documents.' },
  { name: 'operation', description: 'Health.' },
];

/** The document of the service. An app that is a web server takes any method and any path below the app. */
export const serviceDocument: Json = openApi(
  {
    title: 'inference-proxy',
    version: 'v4',
    description:
      'Calls functions, streams their items, and delivers their answers to webhooks. An app that is a web server receives every method on every path below `/v4/{project}/{app}`.',
  },
  TAGS,
  servicePaths,
);
