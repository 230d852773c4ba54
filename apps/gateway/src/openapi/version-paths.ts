// Contract 7: the paths of apps and versions in the document of the service.
import { answer, COMMON, errors, type Json, json, parameter } from './components.ts';

const TEXT = { type: 'string' };
const LIST = { type: 'array', items: { type: 'object' } };
const object = (properties: Json): Json => ({ type: 'object', required: Object.keys(properties), properties });

const APP = object({ name: TEXT, kind: TEXT, state: TEXT, functions: LIST });
const VERSION = object({ app: TEXT, version: TEXT, state: TEXT, rolling_out: { type: 'boolean' } });
const CHANGED = object({ version: TEXT, state: TEXT });

const ofApp = (...more: readonly string[]): Json[] => ['project', 'app', ...more].map(parameter);

const APPS = '/v4/{project}/apps';
const VERSIONS = `${APPS}/{app}/versions`;

/** By path and method. */
export const versionPaths: Json = {
  [APPS]: {
    get: {
      operationId: 'listAllApps',
      tags: ['apps'],
      summary: 'Lists the apps of a project with their states',
      parameters: [parameter('project')],
      responses: { 200: answer('The apps.', json(object({ apps: LIST }))), ...errors(...COMMON) },
    },
  },
  [`${APPS}/{app}`]: {
    get: {
      operationId: 'readApp',
      tags: ['apps'],
      summary: 'Returns an app with its versions and activations',
      parameters: ofApp(),
      responses: { 200: answer('The app.', json(APP)), ...errors(...COMMON) },
    },
    delete: {
      operationId: 'deleteApp',
      tags: ['apps'],
      summary: 'Removes a deployed app with its versions',
      parameters: ofApp(),
      responses: { 202: answer('The app takes no new calls.', json(object({ app: TEXT }))), ...errors(...COMMON) },
    },
  },
  [VERSIONS]: {
    post: {
      operationId: 'deployVersion',
      tags: ['apps'],
      summary: 'Deploys a version of an app',
      parameters: ofApp('activate'),
      requestBody: { required: true, content: { 'application/gzip': {} } },
      responses: {
        200: answer('The version existed before.', json(CHANGED)),
        201: answer('The version is new.', json(CHANGED)),
        ...errors(
          ...COMMON,
          'invalid_request',
          'unsupported_media_type',
          'payload_too_large',
          'invalid_bundle',
          'overloaded',
        ),
      },
    },
  },
  [`${VERSIONS}/{version}`]: {
    get: {
      operationId: 'readVersion',
      tags: ['apps'],
      summary: 'Returns a version',
      parameters: ofApp('version'),
      responses: { 200: answer('The version.', json(VERSION)), ...errors(...COMMON, 'conflict') },
    },
  },
  [`${VERSIONS}/{version}/log`]: {
    get: {
      operationId: 'readVersionLog',
      tags: ['apps'],
      summary: 'Returns the log of a version',
      parameters: ofApp('version', 'follow'),
      responses: {
        200: answer('The lines.', {
          ...json(object({ lines: LIST, truncated: { type: 'boolean' } })),
          'text/event-stream': { schema: { description: 'Server-sent events.' } },
        }),
        ...errors(...COMMON, 'invalid_request', 'conflict'),
      },
    },
  },
  [`${VERSIONS}/{version}/activate`]: {
    post: {
      operationId: 'activateVersion',
      tags: ['apps'],
      summary: 'Activates a version',
      parameters: ofApp('version'),
      responses: { 202: answer('The roll-out begins.', json(CHANGED)), ...errors(...COMMON, 'conflict') },
    },
  },
  '/v4/{project}/audit': {
    get: {
      operationId: 'readAudit',
      tags: ['apps'],
      summary: 'Lists changes of apps, newest first',
      parameters: ['project', 'limit', 'cursor'].map(parameter),
      responses: {
        200: answer('A page of changes.', json(object({ entries: LIST }))),
        ...errors(...COMMON, 'invalid_request'),
      },
    },
  },
};
