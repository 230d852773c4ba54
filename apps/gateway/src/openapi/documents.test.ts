// Contract 6: who gets which document, and what the document of an app has.
import type { FunctionSpec } from '@inference-proxy/contracts';
import { errorOf } from '@inference-proxy/test/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GatewayUnderTest, PROJECT, token } from '../../test/gateway-under-test.ts';
import { app } from '../../test/played-worker.ts';

const NODE = {
  type: 'object',
  properties: { next: { anyOf: [{ $ref: '#/$defs/Node' }, { type: 'null' }] } },
  default: { $ref: 'a value' },
};
const walk: FunctionSpec = {
  name: 'walk',
  parameters: [],
  extra: false,
  examples: [{ node: {} }],
  schema: {
    kind: 'stream',
    summary: 'Walks.',
    description: 'From node to node.\n\nExamples:\n{"ignored": true}',
    parameters: {
      type: 'object',
      properties: { node: { $ref: '#/$defs/Node' } },
      required: ['node'],
      $defs: { Node: NODE },
    },
    item: { type: 'string' },
  },
};
const add: FunctionSpec = {
  name: 'add',
  parameters: [],
  extra: false,
  schema: {
    kind: 'value',
    description: 'Example:\n  {"a": 1}\n  {not json}\n  text',
    parameters: { type: 'object', properties: { a: { type: 'integer' } }, required: [] },
    returns: { type: 'integer' },
  },
};
const PARAMETERS_OF_ADD = { $ref: '#/components/schemas/add.parameters' };
const FILE = { type: 'string', format: 'binary' };
const draw: FunctionSpec = {
  name: 'draw',
  parameters: [],
  extra: false,
  media: 'image/png',
  schema: {
    kind: 'value',
    parameters: {
      type: 'object',
      properties: { photos: { anyOf: [{ type: 'array', items: FILE }, { type: 'null' }] } },
      required: [],
    },
    returns: FILE,
  },
};
const untyped: FunctionSpec = {
  name: 'untyped',
  doc: 'Says it.',
  parameters: [
    { name: 'text', required: true, annotation: 'Text' },
    { name: 'times', required: false, default: 2 },
    { name: 'run_id', required: true },
  ],
  extra: false,
};

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await GatewayUnderTest.start();
  await gateway.worker.start(
    app({ app: 'typed', version: 'v1', functions: [walk, add, draw, untyped] }),
    app({ app: 'site', kind: 'server', functions: [] }),
    app({ app: 'ill', state: 'broken', error: { code: 'app_failed_to_start', message: 'no module' } }),
  );
});
afterAll(() => gateway.stop());

type Tree = { readonly [member: string]: Tree };

async function documentOf(name: string): Promise<Tree> {
  const answer = await gateway.get(`/openapi/${PROJECT}/${name}.json`);
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text) as Tree;
}

const operationOf = (paths: Tree | undefined, fn: string): Tree => {
  const operation = paths?.[`/v4/${PROJECT}/typed/${fn}`]?.post;
  if (operation === undefined) throw new Error(`${fn} is not described`);
  return operation;
};

test('the document of the service needs no token', async () => {
  const answer = await gateway.get('/openapi.json', { authorization: '' });
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.text)).toMatchObject({ openapi: '3.1.0' });
});

test.each([
  ['no token', `/openapi/${PROJECT}/typed.json`, '', 401],
  ['a token of another project', '/openapi/other/typed.json', undefined, 403],
  ['a token without runs:read', `/openapi/${PROJECT}/typed.json`, `Bearer ${token({ scope: 'call' })}`, 403],
  ['an unknown app', `/openapi/${PROJECT}/none.json`, undefined, 404],
  ['another suffix', `/openapi/${PROJECT}/typed.yaml`, undefined, 404],
  ['a broken app', `/openapi/${PROJECT}/ill.json`, undefined, 503],
])('the document of an app with %s is refused', async (_, path, authorization, status) => {
  const answer = await gateway.get(path, authorization === undefined ? {} : { authorization });
  expect(answer.status).toBe(status);
  expect(errorOf(answer)).toBeDefined();
});

test('another method than GET is not allowed', async () => {
  const answer = await gateway.request(`/openapi/${PROJECT}/typed.json`, { body: '{}' });
  expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD']);
});

test('a function has its summary, its schemas and its answers', async () => {
  const { info, paths, components } = await documentOf('typed');
  expect(info).toMatchObject({ title: `${PROJECT}/typed`, version: 'v1' });
  const operation = operationOf(paths, 'add');
  expect(operation).toMatchObject({
    operationId: 'add',
    requestBody: {
      required: false,
      content: {
        'application/json': { schema: PARAMETERS_OF_ADD, examples: { example1: { value: { a: 1 } } } },
      },
    },
  });
  expect(components?.schemas?.['add.parameters']).toEqual(add.schema?.parameters);
  expect(operation.responses?.[200]?.content?.['application/json']?.schema?.allOf).toEqual([
    { $ref: '#/components/schemas/Envelope' },
    { type: 'object', required: ['result'], properties: { result: { type: 'integer' } } },
  ]);
  expect(Object.keys(operation.responses ?? {})).toEqual(
    expect.arrayContaining(['200', '202', '401', '422', '429', '500']),
  );
});

test('a generator has a stream of its items, and definitions move to the components', async () => {
  const { paths, components } = await documentOf('typed');
  const { summary, description, requestBody, responses } = operationOf(paths, 'walk');
  expect([summary, description]).toEqual(['Walks.', walk.schema?.description]);
  const body = requestBody?.content?.['application/json'];
  expect(components?.schemas?.['walk.parameters']).toMatchObject({
    properties: { node: { $ref: '#/components/schemas/walk.parameters.Node' } },
  });
  expect(body?.examples).toEqual({ example1: { value: { node: {} } } });
  expect(components?.schemas?.['walk.parameters.Node']).toEqual({
    ...NODE,
    properties: { next: { anyOf: [{ $ref: '#/components/schemas/walk.parameters.Node' }, { type: 'null' }] } },
  });
  const content = responses?.[200]?.content;
  expect(content?.['text/event-stream']).toEqual({ schema: { type: 'string' } });
  expect(JSON.stringify(content?.['application/json'])).toContain('"items":{"type":"string"}');
});

test('a typed function takes forms, and declared bytes have their media type', async () => {
  const { paths } = await documentOf('typed');
  for (const type of ['multipart/form-data', 'application/x-www-form-urlencoded'])
    expect(operationOf(paths, 'add').requestBody?.content?.[type]).toEqual({ schema: PARAMETERS_OF_ADD });
  expect(Object.keys(operationOf(paths, 'untyped').requestBody?.content ?? {})).toEqual(['application/json']);
  const { responses } = operationOf(paths, 'draw');
  expect(Object.keys(responses?.[200]?.content ?? {})).toEqual(['application/json', 'image/png']);
});

test('a function without annotations has the parameters of its signature', async () => {
  const { paths } = await documentOf('typed');
  const { summary, requestBody } = operationOf(paths, 'untyped');
  expect(summary).toBe('Says it.');
  expect(requestBody?.content?.['application/json']?.schema).toEqual({
    type: 'object',
    properties: { text: { description: 'Annotated as `Text`.' }, times: { default: 2 }, run_id: {} },
    required: ['text'],
    additionalProperties: false,
  });
});

test('an app that is a web server has one path for all its paths', async () => {
  const { paths } = await documentOf('site');
  expect(Object.keys(paths ?? {})).toEqual([`/v4/${PROJECT}/site/{path}`]);
});
