// Contract 6, "Settings": the forms of `BUNDLES_URL`.
import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { bundleStoreSettings, parseBundlesUrl } from './bundles-url.ts';

test.each([
  ['file:bundles', { kind: 'file', folder: 'bundles' }],
  ['file:///srv/bundles', { kind: 'file', folder: '/srv/bundles' }],
  ['s3://my-bucket', { kind: 's3', bucket: 'my-bucket', prefix: '' }],
  ['s3://my-bucket/', { kind: 's3', bucket: 'my-bucket', prefix: '' }],
  ['s3://my.bucket/a//b/', { kind: 's3', bucket: 'my.bucket', prefix: 'a/b' }],
])('the URL %s names a store', (url, place) => {
  expect(parseBundlesUrl(url)).toEqual(place);
});

test.each(['', 'bundles', 'ftp://x', 'file:', 's3:', 's3://', 's3://Upper', 's3://a/b', 's3://bucket/a?b'])(
  'the URL %j is rejected',
  (url) => {
    expect(() => parseBundlesUrl(url)).toThrow('expected file:<folder> or s3://<bucket>/<prefix>');
  },
);

test('an address with a user is rejected, because it would be logged', () => {
  const settings = z.object(bundleStoreSettings);
  expect(settings.safeParse({ AWS_ENDPOINT_URL_S3: 'https://store.example.com:9000' }).success).toBe(true);
  for (const address of ['store.example.com', 'https://user:key@store.example.com', 'ftp://store.example.com'])
    expect(settings.safeParse({ AWS_ENDPOINT_URL_S3: address }).success).toBe(false);
});
