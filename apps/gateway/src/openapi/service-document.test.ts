// Contract 6: the document of the service describes the routes of the gateway.
import 'reflect-metadata';
import { expect, test } from '@jest/globals';
import { RequestMethod } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { controllers } from '../gateway.module.ts';
import { serviceDocument, servicePaths } from './service-document.ts';

/** Apps that are web servers receive any path. The pages have no interface for programs. */
const NOT_DESCRIBED = ['PassthroughController', 'DocsController', 'ConsoleController'];
const NAMES: Readonly<Record<string, string>> = { 'openapi/{project}/{file}': 'openapi/{project}/{app}.json' };

/** Returns the routes of a controller, as `METHOD /path`. */
function routesOf(controller: (typeof controllers)[number]): string[] {
  const root = Reflect.getMetadata(PATH_METADATA, controller) as string;
  const handlers = Object.getOwnPropertyNames(controller.prototype).filter((name) => name !== 'constructor');
  return handlers.flatMap((name) => {
    const handler = (controller.prototype as unknown as Record<string, object>)[name] as object;
    const path = Reflect.getMetadata(PATH_METADATA, handler) as string | undefined;
    if (path === undefined) return [];
    const method = RequestMethod[Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod];
    const whole = [root, path]
      .filter((part) => part !== '/')
      .join('/')
      .replace(/:(\w+)/g, '{$1}');
    return [`${method} /${NAMES[whole] ?? whole}`];
  });
}

test('the document has every route of the gateway, and no other', () => {
  const routes = controllers.filter(({ name }) => !NOT_DESCRIBED.includes(name)).flatMap(routesOf);
  const described = Object.entries(servicePaths).flatMap(([path, methods]) =>
    Object.keys(methods as object).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(described.sort()).toEqual(routes.sort());
});

test('every operation has an id of its own, and the document has no unused component', () => {
  const text = JSON.stringify(serviceDocument);
  const ids = [...text.matchAll(/"operationId":"(\w+)"/g)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const { components } = serviceDocument as { components: Record<string, object> };
  for (const kind of ['schemas', 'parameters', 'responses', 'headers'])
    for (const name of Object.keys(components[kind] ?? {})) expect(text).toContain(`"#/components/${kind}/${name}"`);
});
