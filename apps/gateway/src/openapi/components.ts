// OpenAPI 3.1: the parts that the documents of the service and of the apps share.
import { type ErrorCode, errorKinds } from '@inference-proxy/contracts';
import { appSchemas } from './app-schemas.ts';

/** A JSON value of a document. */
export type Json = { readonly [member: string]: unknown };

type ComponentKind = 'schemas' | 'parameters' | 'headers' | 'responses';

export const ref = (kind: ComponentKind, name: string): Json => ({ $ref: `#/components/${kind}/${name}` });
const schema = (name: string): Json => ref('schemas', name);
export const parameter = (name: string): Json => ref('parameters', name);

export const json = (body: Json, more: Json = {}): Json => ({ 'application/json': { schema: body, ...more } });

/** Returns an answer of the service. Every answer carries the request's id. */
export const answer = (description: string, content?: Json, headers: Json = {}): Json => ({
  description,
  headers: { 'X-Request-Id': ref('headers', 'RequestId'), ...headers },
  ...(content && { content }),
});

export const ACCEPTED_RUN = ref('responses', 'AcceptedRun');

const errorName = (status: number): string => `Error${status}`;

/** The codes of each error status. */
const CODES = Map.groupBy(Object.keys(errorKinds) as ErrorCode[], (code) => errorKinds[code].status);

/** Returns the error answers with these codes, by status. */
export const errors = (...codes: readonly ErrorCode[]): Json =>
  Object.fromEntries(
    [...new Set(codes.map((code) => errorKinds[code].status))]
      .sort((one, other) => one - other)
      .map((status) => [String(status), ref('responses', errorName(status))]),
  );

/** Errors of every route that needs a token. */
export const COMMON: readonly ErrorCode[] = ['unauthorized', 'forbidden', 'not_found', 'internal', 'unavailable'];

/** Errors of every call of a function. */
export const OF_CALLS: readonly ErrorCode[] = [
  ...COMMON,
  'invalid_request',
  'unsupported_media_type',
  'payload_too_large',
  'invalid_input',
  'overloaded',
  'function_error',
  'replica_crashed',
  'timed_out',
  'cancelled',
  'conflict',
];

const text = (description: string, more: Json = {}): Json => ({ type: 'string', description, ...more });
const time = (description: string): Json => text(description, { format: 'date-time' });
const RUN_ID = { type: 'string', format: 'uuid', example: '01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17' };

const ERROR_OBJECT: Json = {
  type: 'object',
  required: ['code', 'message', 'retryable'],
  properties: {
    code: { type: 'string', enum: Object.keys(errorKinds), description: 'A stable code.' },
    message: text('A text for people.'),
    retryable: { type: 'boolean', description: 'Whether the same call may succeed on a later try.' },
    type: text('The class of the exception, if the function raised one.'),
    param: { type: ['string', 'null'], description: 'The wrong parameter, on the paths of OpenAI clients.' },
    details: { type: 'array', items: schema('ErrorDetail') },
    traceback: text('Only for an app with `debug = true`.'),
  },
};

const schemas: Json = {
  ErrorDetail: {
    type: 'object',
    description: 'One violation.',
    required: ['loc', 'msg', 'type'],
    properties: {
      loc: { type: 'array', items: { type: ['string', 'integer'] }, description: 'The place, from `body` on.' },
      msg: text('A text for people.'),
      type: text('The violated rule.', { example: 'missing' }),
    },
  },
  ErrorObject: ERROR_OBJECT,
  Error: {
    type: 'object',
    description: 'The fields of the run are present if a run exists.',
    required: ['error'],
    properties: {
      error: schema('ErrorObject'),
      run_id: RUN_ID,
      status: { type: 'string', enum: ['failed', 'cancelled', 'timed_out', 'expired'] },
      run_time_ms: { type: 'number' },
      timestamp: time('The time of the run’s end.'),
    },
  },
  Envelope: {
    type: 'object',
    required: ['run_id', 'status', 'result', 'run_time_ms', 'timestamp'],
    properties: {
      run_id: RUN_ID,
      status: { type: 'string', const: 'succeeded' },
      result: { description: 'The return value, or the list of the items of a generator.' },
      run_time_ms: { type: 'number', description: 'The time in the function, in milliseconds.' },
      timestamp: time('The time of the run’s end.'),
    },
  },
  AcceptedRun: { type: 'object', required: ['run_id'], properties: { run_id: RUN_ID } },
  Run: {
    type: 'object',
    required: ['run_id', 'app', 'function', 'status', 'accepted_at', 'queued_at', 'items'],
    properties: {
      run_id: RUN_ID,
      app: { type: 'string' },
      function: { type: 'string' },
      version: { type: 'string' },
      status: {
        type: 'string',
        enum: ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'expired'],
      },
      accepted_at: time('The time of the call.'),
      queued_at: time('The time at which the run was queued.'),
      started_at: time('The time of the start.'),
      first_item_at: time('The time of the first item.'),
      ended_at: time('The time of the end.'),
      items: { type: 'integer', description: 'The number of items.' },
      result: { description: 'The result, if the run succeeded.' },
      status_code: { type: 'integer' },
      content_type: { type: 'string' },
      run_time_ms: { type: 'number' },
      timestamp: time('The time of the run’s end.'),
      webhook: {
        type: 'object',
        required: ['state', 'attempts'],
        properties: {
          state: { type: 'string' },
          attempts: { type: 'integer' },
          next_attempt_at: time('The time of the next attempt.'),
        },
      },
      error: schema('ErrorObject'),
    },
  },
  Delivery: {
    type: 'object',
    required: ['delivery_id', 'run_id', 'url', 'status', 'attempts'],
    properties: {
      delivery_id: { type: 'string' },
      run_id: RUN_ID,
      url: { type: 'string' },
      status: { type: 'string' },
      attempts: { type: 'integer' },
      created_at: time('The time at which the delivery was due.'),
      next_attempt_at: time('The time of the next attempt.'),
      attempt_under_way: { type: 'boolean', const: true },
      parked: schema('Parked'),
      log: { type: 'array', items: schema('Attempt'), description: 'The attempts.' },
      last_attempt: schema('Attempt'),
    },
  },
  Parked: {
    type: 'object',
    description: 'The delivery waits for a place at its receiver.',
    required: ['since', 'reason'],
    properties: { since: time('The start of the wait.'), reason: text('Such as `circuit_open`.') },
  },
  Attempt: {
    type: 'object',
    description: 'One attempt of a delivery.',
    required: ['attempt', 'at', 'duration_ms'],
    properties: {
      attempt: { type: 'integer' },
      at: time('The time of the attempt.'),
      duration_ms: { type: 'number' },
      address: text('The address of the receiver.'),
      request_headers: {
        type: 'object',
        additionalProperties: { type: 'string' },
        description: 'The headers that were sent. The values of signatures are withheld.',
      },
      status: { type: 'integer', description: 'The status of the receiver’s answer.' },
      error: text('The class of the error.'),
      message: text('A text for people.'),
      location: text('The target of a redirect.'),
      answer: text('The start of the receiver’s answer.'),
      retry_after_s: { type: 'number' },
      parked: schema('Parked'),
      next_attempt_at: time('The time of the next attempt.'),
    },
  },
  LogLine: {
    type: 'object',
    description: 'One line that a run printed or logged.',
    required: ['seq', 'stream', 'time', 'text'],
    properties: {
      seq: { type: 'integer' },
      stream: { type: 'string', enum: ['stdout', 'stderr'] },
      time: time('The time of the line.'),
      text: { type: 'string' },
    },
  },
  ...appSchemas,
};

const query = (name: string, description: string, body: Json): Json => ({
  name,
  in: 'query',
  description,
  schema: body,
});
const header = (name: string, description: string, body: Json): Json => ({
  name,
  in: 'header',
  description,
  schema: body,
});
const path = (name: string, description: string, example: string, pattern?: string): Json => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string', ...(pattern && { pattern }) },
  example,
});

const FLAG = { type: 'string', enum: ['true', 'false'] };
const NUMBER = { type: 'string', pattern: '^[0-9]{1,15}$' };
const WORD = { type: 'string', minLength: 1, maxLength: 512 };
const SEGMENT = '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$';

const parameters: Json = {
  project: path('project', 'The project.', 'demo', SEGMENT),
  app: path('app', 'The app.', 'hello', SEGMENT),
  function: path('function', 'The function.', 'greet', '^[A-Za-z][A-Za-z0-9_]{0,126}$'),
  run: path('run', 'The run’s id.', RUN_ID.example),
  receiver: path('host', 'A host, or a host and a port (443 without a port).', 'receiver.example.com:443'),
  delivery: path('delivery', 'The delivery’s id.', RUN_ID.example),
  model: path('model', 'The model, which is the name of the function.', 'greet'),
  jti: path('jti', 'The id of the token.', 'token-1'),
  name: path('name', 'The name of a secret.', 'API_KEY', '^[A-Z_][A-Z0-9_]{0,127}$'),
  version: path('version', 'The version, or its first 8 or more digits.', 'd3f6e1f7', '^[0-9a-f]{8,64}$'),
  async: query('async', '`true` answers 202 at once. The run continues.', FLAG),
  ids: query('ids', '`true` gives every event of a stream an id.', FLAG),
  events: query('events', '`full` asks for the rich stream.', { type: 'string', enum: ['full'] }),
  webhookEndpoint: query('webhookEndpoint', 'An URL that receives the envelope of the run by POST.', {
    type: 'string',
    format: 'uri',
  }),
  onDisconnect: query('onDisconnect', 'The fate of a run without a reader: `cancel`, `continue` or seconds.', {
    type: 'string',
    pattern: '^(cancel|continue|[0-9]{1,9})$',
  }),
  after: query('after', 'The number of the last event that the reader has.', NUMBER),
  lastEventId: query('lastEventId', 'The same as `after`.', NUMBER),
  follow: query('follow', '`true` returns the lines as server-sent events.', FLAG),
  prefer: header('Prefer', '`respond-async` answers 202 at once, `wait=N` after N seconds.', { type: 'string' }),
  idempotencyKey: header('Idempotency-Key', 'A repeated call with the same key returns the run of the first call.', {
    type: 'string',
    minLength: 1,
    maxLength: 255,
    pattern: '^[!-~]+$',
  }),
  webhookSecret: header('X-Webhook-Secret', 'The key that signs the delivery.', {
    type: 'string',
    minLength: 1,
    pattern: '^[!-~]+$',
  }),
  lastEventIdHeader: header('Last-Event-ID', 'The number of the last event that the reader has.', NUMBER),
  limit: query('limit', 'The most entries of the page.', { type: 'integer', minimum: 1, maximum: 100, default: 50 }),
  cursor: query('cursor', 'The `cursor` of the previous page.', WORD),
  filterApp: query('app', 'Only this app.', WORD),
  activate: query('activate', '`false` builds the version and does not activate it.', FLAG),
  filterFunction: query('function', 'Only runs of this function.', WORD),
  filterStatus: query('status', 'Only runs in this state.', {
    type: 'string',
    enum: ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'expired'],
  }),
  filterWebhook: query('webhook', 'Only runs whose webhook is in this state, without a webhook, or with any.', {
    type: 'string',
    enum: ['none', 'any', 'waiting', 'pending', 'delivered', 'failed'],
  }),
  window: query('window', 'The length of the window in seconds. The window ends now.', {
    type: 'integer',
    minimum: 60,
    maximum: 86400,
    default: 3600,
  }),
  filterDelivery: query('status', 'Only deliveries in this state.', {
    type: 'string',
    enum: ['pending', 'delivered', 'failed'],
  }),
  host: query('host', 'Only deliveries to this host.', WORD),
  since: query('since', 'Only entries since this time.', { type: 'string', format: 'date-time' }),
  until: query('until', 'Only entries until this time.', { type: 'string', format: 'date-time' }),
  sub: query('sub', 'The subject of the tokens.', { type: 'string', minLength: 1, maxLength: 256 }),
  exp: query('exp', 'The expiry of the token, in Unix seconds.', { type: 'string', pattern: '^[0-9]{1,11}$' }),
};

const headers: Json = {
  RequestId: { description: 'The id of the request. For a call, the id of its run.', schema: { type: 'string' } },
  Location: { description: 'The path of the run.', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds, or a date.', schema: { type: 'string' } },
};

/** Returns the answer of the errors with one status. */
const errorAnswer = (codes: readonly ErrorCode[]): Json =>
  answer(
    codes.map((code) => `\`${code}\``).join(', '),
    json(schema('Error')),
    codes.some((code) => 'retryAfterS' in errorKinds[code]) ? { 'Retry-After': ref('headers', 'RetryAfter') } : {},
  );

const responses: Json = {
  ...Object.fromEntries([...CODES].map(([status, codes]) => [errorName(status), errorAnswer(codes)])),
  AcceptedRun: answer('The run was accepted and continues.', json(schema('AcceptedRun')), {
    Location: ref('headers', 'Location'),
  }),
  FunctionStatus: answer(
    'A function may set another status, by `status_code` in its result or in its exception.',
    json({ anyOf: [schema('Envelope'), schema('Error')] }),
  ),
};

/** Removes the components that a document does not use. Documents of apps stay small. */
function usedOnly(document: Json, all: Readonly<Record<string, Json>>): Json {
  const used = new Set<string>();
  const pending: unknown[] = [document];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value)) {
      if (name !== '$ref' || typeof member !== 'string' || used.has(member)) pending.push(member);
      else {
        used.add(member);
        const [, , kind = '', component = ''] = member.split('/');
        pending.push(all[kind]?.[component]);
      }
    }
  }
  const kept = Object.entries(all).map(([kind, members]) => [
    kind,
    Object.fromEntries(Object.entries(members).filter(([name]) => used.has(`#/components/${kind}/${name}`))),
  ]);
  return Object.fromEntries(kept);
}

/** Returns a whole document. @param own schemas of this document alone */
export function openApi(
  info: { readonly title: string; readonly version: string; readonly description: string },
  tags: readonly Json[],
  paths: Json,
  own: Json = {},
): Json {
  const components = { schemas: { ...schemas, ...own }, parameters, headers, responses };
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags,
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      ...usedOnly(paths, components),
    },
  };
}
