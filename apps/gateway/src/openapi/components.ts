// OpenAPI 3.1: the parts that the documents of the service and of the apps share.
import { type ErrorCode, errorKinds } from '@inference-proxy/contracts';
import { appSchemas } from './app-schemas.ts';
import { type Json, RUN_ID, schema } from './json.ts';
import { parameters } from './parameters.ts';

type ComponentKind = 'schemas' | 'parameters' | 'headers' | 'responses';

export const ref = (kind: ComponentKind, name: string): Json => ({ $ref: `#/components/${kind}/${name}` });
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
