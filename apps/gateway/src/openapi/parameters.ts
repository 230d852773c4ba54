// OpenAPI 3.1: the parameters of paths, queries and headers.
import { type Json, RUN_ID } from './json.ts';

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

/** The parameters by the names that operations use. */
export const parameters: Json = {
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
