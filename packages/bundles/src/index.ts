export { type BundleStore, BundleStoreError, type BundleWriter, DamagedBundle, MissingBundle } from './bundle-store.ts';
export { type BundleStoreSettings, bundleStoreSettings, openBundleStore } from './bundles-url.ts';
export { type AppFiles, type Inspected, inspectBundle } from './inspect.ts';
export { unpackBundle } from './unpack.ts';
