export { type BundleStore, DamagedBundle, MissingBundle } from './bundle-store.ts';
export { BUNDLES_URL_TEXT, type BundlesUrl, bundlesUrl } from './bundles-url.ts';
export { type AppFiles, type Inspected, inspectBundle } from './inspect.ts';
export { unpackBundle } from './unpack.ts';
