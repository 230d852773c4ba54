// Contract 6: the files of `GET /docs`: the page's own files, and Swagger UI (docs/decisions/0043).
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { type FilePlace, PageFiles, TYPES } from './page-files.ts';

/** The page's own files, outside the sources because browsers run them. */
const PAGE = new URL('../../page/', import.meta.url);
const modules = createRequire(import.meta.url);

const ofPage = (name: string): string => fileURLToPath(new URL(name, PAGE));
const ofSwagger = (name: string): string => modules.resolve(`swagger-ui-dist/${name}`);

/** By name: the media type and the path of a file. The name of the page itself is empty. */
const FILES: Readonly<Record<string, readonly [type: string, path: () => string]>> = {
  '': [TYPES.html, () => ofPage('index.html')],
  'page.js': [TYPES.js, () => ofPage('page.js')],
  'live.js': [TYPES.js, () => ofPage('live.js')],
  'page.css': [TYPES.css, () => ofPage('page.css')],
  'swagger-ui-bundle.js': [TYPES.js, () => ofSwagger('swagger-ui-bundle.js')],
  'swagger-ui.css': [TYPES.css, () => ofSwagger('swagger-ui.css')],
  'favicon-32x32.png': [TYPES.png, () => ofSwagger('favicon-32x32.png')],
};

function placeOf(name: string): FilePlace | undefined {
  if (!Object.hasOwn(FILES, name)) return undefined;
  const [type, path] = FILES[name] as (typeof FILES)[string];
  return { type, path: path() };
}

export class DocsFiles extends PageFiles {
  constructor() {
    super(placeOf);
  }
}
