// Contract 7: the files that make a folder an app.

/** Files that may hold a manifest. Keys of an earlier file win over keys of a later file. */
export const MANIFEST_FILES = ['app.toml', 'cerebrium.toml'] as const;

export const PYTHON_ENTRYPOINT = 'main.py';

/** Entry points in JavaScript and TypeScript. An earlier name wins. */
export const NODE_ENTRYPOINTS = [
  'main.ts',
  'main.mts',
  'main.cts',
  'main.tsx',
  'main.mjs',
  'main.js',
  'main.cjs',
] as const;
