// Tests run from TypeScript sources: the `source` condition of every package's exports map stands for its build.
export default {
  // Against hanging only: what is waited for is an event, and a machine may be slow.
  testTimeout: 180_000,
  globalSetup: '<rootDir>/test/stack/shared-stack-run.mjs',
  testSequencer: '<rootDir>/test/longest-first.mjs',
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  testMatch: ['<rootDir>/{apps,packages,test}/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['<rootDir>/.*/dist/'],
  // Some packages have a `source` condition too, for TypeScript that is not ours to compile.
  transformIgnorePatterns: ['/node_modules/.*\\.[cm]?js$'],
  // The sources of `eventsource` import names that only its build has.
  moduleNameMapper: { '^eventsource$': '<rootDir>/node_modules/eventsource/dist/index.js' },
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2024',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
        module: { type: 'es6' },
        sourceMaps: 'inline',
      },
    ],
  },
};
