// Contract 6, "Settings": `BUNDLES_URL`, which names the bundle store.
import { z } from 'zod';
import type { BundleStore } from './bundle-store.ts';
import { FileBundleStore } from './file-bundle-store.ts';

/** Description of the setting, the same for all services. */
export const BUNDLES_URL_TEXT =
  'store of the bundles of deployed versions: file:<folder>, shared by gateways and workers';

/** The store that a URL names. */
export interface BundlesUrl {
  readonly open: () => BundleStore;
}

/**
 * Reads the URL of a bundle store: `file:<folder>`, absolute or relative to the working directory.
 *
 * @throws Error that names the expected form
 */
export function parseBundlesUrl(url: string): BundlesUrl {
  const folder = /^file:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1];
  if (folder === undefined) throw new Error('expected file:<folder>');
  return { open: () => new FileBundleStore(folder) };
}

/** The setting `BUNDLES_URL`. */
export const bundlesUrl = () =>
  z.string({ error: 'expected file:<folder>' }).transform((url, context): BundlesUrl => {
    try {
      return parseBundlesUrl(url);
    } catch (error) {
      context.issues.push({ code: 'custom', message: (error as Error).message, input: url });
      return z.NEVER;
    }
  });
