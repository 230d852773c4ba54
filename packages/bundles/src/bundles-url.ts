// Contract 6, "Settings": `BUNDLES_URL`, which names the bundle store, and the usual variables for S3.
import { z } from 'zod';
import type { BundleStore } from './bundle-store.ts';
import { FileBundleStore } from './file-bundle-store.ts';

const EXPECTED = 'expected file:<folder> or s3://<bucket>/<prefix>';

/** The store that a URL names. */
export type BundlesUrl =
  | { readonly kind: 'file'; readonly folder: string }
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string };

/** Names that all S3-compatible stores allow. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const PREFIX = /^[\w!.*'()/-]*$/;

/**
 * Reads the URL of a bundle store: `file:<folder>`, absolute or relative to the working directory, or `s3://<bucket>/<prefix>`.
 *
 * @throws Error that names the expected form
 */
export function parseBundlesUrl(url: string): BundlesUrl {
  const folder = /^file:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1];
  if (folder !== undefined) return { kind: 'file', folder };
  const [, bucket = '', path = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(url) ?? [];
  const prefix = path.split('/').filter(Boolean).join('/');
  if (!BUCKET.test(bucket) || !PREFIX.test(prefix)) throw new Error(EXPECTED);
  return { kind: 's3', bucket, prefix };
}

const bundlesUrl = () =>
  z.string({ error: EXPECTED }).transform((url, context): BundlesUrl => {
    try {
      return parseBundlesUrl(url);
    } catch (error) {
      context.issues.push({ code: 'custom', message: (error as Error).message, input: url });
      return z.NEVER;
    }
  });

const endpoint = (meaning: string) =>
  z
    .string()
    .refine((text) => /^https?:\/\/[^/@]+\/?$/.test(text) && URL.canParse(text), 'expected http(s)://host:port')
    .optional()
    .describe(meaning);

/** The settings of the bundle store, the same for gateways and workers. */
export const bundleStoreSettings = {
  BUNDLES_URL: bundlesUrl()
    .prefault('file:.data/bundles')
    .describe('store of the bundles: file:<folder>, shared by gateways and workers, or s3://<bucket>/<prefix>'),
  AWS_ACCESS_KEY_ID: z
    .string()
    .optional()
    .describe('access key for s3:; not set: the role of the machine or pod, as the AWS SDK finds it'),
  AWS_SECRET_ACCESS_KEY: z.string().meta({ secret: true }).optional().describe('secret key for s3:'),
  AWS_SESSION_TOKEN: z.string().meta({ secret: true }).optional().describe('session token for s3:'),
  AWS_REGION: z.string().prefault('us-east-1').describe('region of the bucket'),
  AWS_ENDPOINT_URL_S3: endpoint('address of an S3-compatible store; not set: AWS_ENDPOINT_URL, else AWS'),
  AWS_ENDPOINT_URL: endpoint('address of all services of AWS, for a store without an address of its own'),
};

/** The values of {@link bundleStoreSettings}. */
export type BundleStoreSettings = z.output<z.ZodObject<typeof bundleStoreSettings>>;

/** Opens the bundle store of a service. Connects at the first use. */
export async function openBundleStore(settings: BundleStoreSettings): Promise<BundleStore> {
  const { BUNDLES_URL: url } = settings;
  if (url.kind === 'file') return new FileBundleStore(url.folder);
  // The SDK costs a service 32 MiB of memory. A service with a folder does not load it.
  const { S3BundleStore } = await import('./s3-bundle-store.ts');
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION } = settings;
  const address = settings.AWS_ENDPOINT_URL_S3 ?? settings.AWS_ENDPOINT_URL;
  return new S3BundleStore({
    bucket: url.bucket,
    prefix: url.prefix,
    region: AWS_REGION,
    ...(address !== undefined && { endpoint: address }),
    ...(AWS_ACCESS_KEY_ID !== undefined &&
      AWS_SECRET_ACCESS_KEY !== undefined && {
        credentials: {
          accessKeyId: AWS_ACCESS_KEY_ID,
          secretAccessKey: AWS_SECRET_ACCESS_KEY,
          ...(AWS_SESSION_TOKEN !== undefined && { sessionToken: AWS_SESSION_TOKEN }),
        },
      }),
  });
}
