// Contract 7: the schemas of apps, functions and versions in the document of the service.
import { type Json, list, schema, TEXT, TIME } from './json.ts';

const APP = {
  name: TEXT,
  kind: { type: 'string', enum: ['functions', 'server'] },
  state: { type: 'string', description: '`starting`, `ready`, `broken` or `idle`.' },
  reason: { type: 'string', description: 'Why the app is broken, or why it waits.' },
  version: { type: 'string', description: 'The active version.' },
  functions: list(schema('Function')),
  runs: {
    type: 'object',
    required: ['queued', 'running'],
    properties: { queued: { type: 'integer' }, running: { type: 'integer' } },
  },
  replicas: {
    type: 'object',
    description: 'Processes of the app on all workers.',
    required: ['ready', 'desired'],
    properties: { ready: { type: 'integer' }, desired: { type: 'integer' } },
  },
};
const APP_REQUIRED = ['name', 'kind', 'state', 'functions', 'runs', 'replicas'];

const VERSION = {
  version: TEXT,
  state: { type: 'string', description: '`building`, `ready`, `active`, `failed` or `retired`.' },
  rolling_out: { type: 'boolean' },
  author: TEXT,
  created_at: TIME,
  deployed_at: TIME,
  size: { type: 'integer', description: 'Bytes of the bundle.' },
  reason: { type: 'string', description: 'Why the version failed.' },
};
const VERSION_REQUIRED = ['version', 'state', 'rolling_out', 'created_at', 'deployed_at', 'size'];

const activation = (more: Json): Json => ({
  type: 'object',
  required: [...Object.keys(more), 'time'],
  properties: { ...more, time: TIME, author: TEXT },
});

export const appSchemas = {
  Function: {
    type: 'object',
    required: ['name', 'parameters', 'extra'],
    properties: {
      name: TEXT,
      doc: TEXT,
      parameters: list(schema('Parameter')),
      extra: { type: 'boolean', description: 'Whether the function takes any other parameter.' },
      schema: schema('FunctionSchema'),
      untyped: { type: 'string', description: 'Why the function has no schema.' },
      examples: list({ type: 'object' }),
      media: { type: 'string', description: 'The media type of the bytes that the function returns.' },
    },
  },
  Parameter: {
    type: 'object',
    required: ['name', 'required'],
    properties: { name: TEXT, required: { type: 'boolean' }, default: {}, annotation: TEXT },
  },
  FunctionSchema: {
    type: 'object',
    required: ['kind', 'parameters'],
    properties: {
      kind: { type: 'string', enum: ['value', 'stream'] },
      summary: TEXT,
      description: TEXT,
      parameters: { type: 'object', description: 'A JSON Schema.' },
      returns: { type: 'object', description: 'A JSON Schema.' },
      item: { type: 'object', description: 'A JSON Schema.' },
    },
  },
  App: { type: 'object', required: APP_REQUIRED, properties: APP },
  AppWithVersions: {
    type: 'object',
    required: [...APP_REQUIRED, 'versions', 'activations'],
    properties: {
      ...APP,
      start_log: {
        ...list(schema('StartLine')),
        description: 'The last lines that a broken app printed while it started.',
      },
      versions: list({ type: 'object', required: VERSION_REQUIRED, properties: VERSION }),
      activations: list(activation({ version: TEXT })),
    },
  },
  Version: {
    type: 'object',
    required: ['app', ...VERSION_REQUIRED, 'activations'],
    properties: { app: TEXT, ...VERSION, activations: list(activation({})) },
  },
  StartLine: {
    type: 'object',
    required: ['time', 'stream', 'text'],
    properties: { time: TIME, stream: { type: 'string', enum: ['stdout', 'stderr'] }, text: TEXT },
  },
  VersionLine: {
    type: 'object',
    description: 'One line of the log of a version.',
    required: ['time', 'text'],
    properties: { time: TEXT, text: TEXT },
  },
};
