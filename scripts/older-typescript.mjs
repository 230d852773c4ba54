// The generator of @hey-api/openapi-ts needs the compiler's JavaScript API, which TypeScript 7 lacks. This hook provides the
// TypeScript 6 of @ts-morph/common. An older version of the package `typescript` would replace the command `tsc` of this repository.
import { registerHooks } from 'node:module';

const SOURCE = "import { ts } from '@ts-morph/common'; export default ts;";

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'typescript'
      ? { url: new URL('older-typescript-api.mjs', import.meta.url).href, shortCircuit: true }
      : next(specifier, context),
  load: (url, context, next) =>
    url.endsWith('/older-typescript-api.mjs')
      ? { format: 'module', source: SOURCE, shortCircuit: true }
      : next(url, context),
});
