// Contract 7: the paths of apps and versions in the document of the service.
import { answer, COMMON, errors, json, parameter, ref } from './components.ts';
import { type Json, list, object, TEXT, TIME } from './json.ts';

/** A change by a user, or an undoing by the service: the audit log. */
const CHANGE = {
  type: 'object',
  required: ['time', 'action', 'target', 'address'],
  properties: { time: TIME, sub: TEXT, action: TEXT, target: TEXT, address: TEXT, reason: TEXT },
};

const APP = ref('schemas', 'App');
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
      responses: {
        200: answer('The apps.', json(object({ apps: { type: 'array', items: APP } }))),
        ...errors(...COMMON),
      },
    },
  },
  [`${APPS}/{app}`]: {
    get: {
      operationId: 'readApp',
      tags: ['apps'],
      summary: 'Returns an app with its versions and activations',
      parameters: ofApp(),
      responses: { 200: answer('The app.', json(ref('schemas', 'AppWithVersions'))), ...errors(...COMMON) },
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
      responses: { 200: answer('The version.', json(ref('schemas', 'Version'))), ...errors(...COMMON, 'conflict') },
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
          ...json(
            object({ lines: { type: 'array', items: ref('schemas', 'VersionLine') }, truncated: { type: 'boolean' } }),
          ),
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
  [`${APPS}/{app}/secrets`]: {
    get: {
      operationId: 'listSecrets',
      tags: ['apps'],
      summary: 'Lists the names of the secrets of an app',
      parameters: ofApp(),
      responses: {
        200: answer('Names and dates.', json(object({ secrets: list(object({ name: TEXT, updated_at: TIME })) }))),
        ...errors(...COMMON),
      },
    },
  },
  [`${APPS}/{app}/secrets/{name}`]: {
    put: {
      operationId: 'setSecret',
      tags: ['apps'],
      summary: 'Sets a secret of an app, and restarts the app',
      parameters: ofApp('name'),
      requestBody: { required: true, content: json(object({ value: TEXT })) },
      responses: {
        204: answer('The secret is set.'),
        ...errors(...COMMON, 'invalid_request', 'payload_too_large', 'overloaded'),
      },
    },
    delete: {
      operationId: 'removeSecret',
      tags: ['apps'],
      summary: 'Removes a secret of an app, and restarts the app',
      parameters: ofApp('name'),
      responses: { 204: answer('The secret is removed.'), ...errors(...COMMON) },
    },
  },
  '/v4/{project}/audit': {
    get: {
      operationId: 'readAudit',
      tags: ['apps'],
      summary: 'Lists changes of apps, newest first',
      parameters: ['project', 'limit', 'cursor'].map(parameter),
      responses: {
        200: answer('A page of changes.', json(object({ entries: list(CHANGE) }))),
        ...errors(...COMMON, 'invalid_request'),
      },
    },
  },
};
