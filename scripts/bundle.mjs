// `node ../../scripts/bundle.mjs main token` in a service's folder bundles dist/main.js and dist/token.js with all their imports into
// dist/bundle/main.js and dist/bundle/token.js. The services run these files. docs/decisions/0021-services-run-as-bundles.md
import { createHash } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { decode, encode } from '@jridgewell/sourcemap-codec';
import { build } from 'esbuild';

const outdir = resolve('dist/bundle');

/** Optional packages that NestJS tries to import at run time. The services do without them. */
const external = [
  '@nestjs/microservices',
  '@nestjs/platform-express',
  '@nestjs/websockets',
  '@fastify/multipart',
  'class-transformer',
  'class-validator',
];

/** The worker's compiler of TypeScript apps. Its program is a file beside its modules. */
const compiler = ['esbuild'];

/** Names that a CommonJS module expects to be defined. */
const banner = `import { createRequire as $createRequire } from 'node:module';
import { dirname as $dirname } from 'node:path';
import { fileURLToPath as $fileURLToPath } from 'node:url';
const require = $createRequire(import.meta.url), __filename = $fileURLToPath(import.meta.url), __dirname = $dirname(__filename);`;

/** Keeps `import.meta.url` of this repository's modules, so that they find the files beside them (Lua scripts, the harness). */
const placesKept = {
  name: 'places-kept',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/(apps|packages)\/[^/]+\/dist\/.*\.js$/ }, async ({ path }) => {
      const place = `new URL(${JSON.stringify(relative(outdir, path))}, import.meta.url).href`;
      return { contents: (await readFile(path, 'utf8')).replaceAll('import.meta.url', place), loader: 'js' };
    }),
};

/**
 * Shrinks a source map. For modules of other packages it keeps only the file and the first line with code. A map of all lines of all modules
 * would raise a service's memory by half.
 */
async function mapOurs(path) {
  const map = JSON.parse(await readFile(path, 'utf8'));
  const others = map.sources.map((source) => source.includes('/node_modules/'));
  let last;
  const lines = decode(map.mappings).map((segments) =>
    segments.filter(([, source]) => {
      const wanted = !others[source] || source !== last;
      last = source;
      return wanted;
    }),
  );
  await writeFile(path, JSON.stringify({ ...map, mappings: encode(lines) }));
}

/**
 * Writes `sources.json`: the hash of each TypeScript source of this repository in the bundle, by its path from the service's folder. The
 * tests' stack compares these hashes before it starts a bundle (`test/stack/bundles.ts`).
 *
 * @param inputs the files that esbuild read; this repository's files are tsc's output in a `dist` folder
 */
async function recordSources(inputs) {
  const sources = inputs
    .filter((path) => /(^|\/)dist\/.*\.js$/.test(path) && !path.includes('node_modules/'))
    .map((path) => path.replace(/(^|\/)dist\//, '$1src/').replace(/\.js$/, '.ts'))
    .sort();
  const hash = async (path) =>
    createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
  const entries = await Promise.all(sources.map(async (path) => [path, await hash(path)]));
  await writeFile(join(outdir, 'sources.json'), JSON.stringify(Object.fromEntries(entries), null, 1));
}

// The names of the output files depend on their contents, so old files would stay.
await rm(outdir, { recursive: true, force: true });
const { metafile } = await build({
  metafile: true,
  entryPoints: process.argv.slice(2).map((name) => `dist/${name}.js`),
  outdir,
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  sourcemap: 'linked',
  sourcesContent: false,
  external: [...external, ...compiler],
  plugins: [placesKept],
  banner: { js: banner },
  logLevel: 'warning',
});
for (const name of await readdir(outdir)) if (name.endsWith('.map')) await mapOurs(join(outdir, name));
await recordSources(Object.keys(metafile.inputs));
