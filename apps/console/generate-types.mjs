// Writes `generated/` from the service's own OpenAPI document, so that a change of the document breaks the console's build.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = import.meta.dirname;
const modules = createRequire(import.meta.url);
const generated = join(here, 'generated');
const file = join(generated, 'openapi.json');
const DOCUMENT = join(here, '..', 'gateway', 'src', 'openapi', 'service-document.ts');
const PRINT = `import(${JSON.stringify(DOCUMENT)}).then(({serviceDocument}) => console.log(JSON.stringify(serviceDocument)))`;

mkdirSync(generated, { recursive: true });
// A process of its own reads the document from the gateway's TypeScript. The console itself imports nothing of the gateway.
writeFileSync(file, execFileSync(process.execPath, ['--conditions=source', '-e', PRINT]));

const hook = fileURLToPath(new URL('../../scripts/older-typescript.mjs', import.meta.url));
const generator = join(dirname(modules.resolve('@hey-api/openapi-ts/package.json')), 'dist', 'run.mjs');
const plugins = ['-p', '@hey-api/typescript'];
execFileSync(
  process.execPath,
  ['--import', hook, generator, '-i', file, '-o', join(generated, 'api'), ...plugins, '--silent', '--no-log-file'],
  { stdio: 'inherit' },
);
