// Contract 7: the errors of an S3-compatible store in words that a caller may see, without addresses and keys.
import { BundleStoreError } from './bundle-store.ts';

/** Reasons by the error code of S3. */
const REASONS: Readonly<Record<string, string>> = {
  NoSuchBucket: 'the bucket of the bundle store does not exist',
  InvalidAccessKeyId: 'the bundle store does not know the access key of this service',
  SignatureDoesNotMatch: 'the bundle store refuses the secret key of this service',
  InvalidToken: 'the bundle store refuses the session token of this service',
  ExpiredToken: 'the session token of this service for the bundle store has expired',
  AccessDenied: 'the bundle store denies access to this service',
  CredentialsProviderError: 'this service has no credentials for the bundle store',
  TimeoutError: 'the bundle store does not answer',
};

/** Codes of connections that were not made or broke, such as ECONNREFUSED. */
const CONNECTION = /^E[A-Z]{4,}$/;
const isConnectionCode = (word: string): boolean =>
  CONNECTION.test(word) || word.startsWith('ERR_TLS') || word.includes('CERT');

interface SdkError {
  readonly name: string;
  readonly message: string;
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** Returns the reason of an error of the SDK. The cause has the text of the store, and no object of the SDK: those hold requests. */
export function s3Error(error: unknown): BundleStoreError {
  if (error instanceof BundleStoreError) return error;
  const { name, message, code, $metadata } = error as SdkError;
  const status = $metadata?.httpStatusCode;
  const cause = new Error(`${name}${status === undefined ? '' : ` (HTTP ${status})`}: ${message || String(code)}`);
  const reason = REASONS[name] ?? otherReason(error as SdkError);
  return new BundleStoreError(reason, cause);
}

function otherReason({ name, message, code, $metadata }: SdkError): string {
  const status = $metadata?.httpStatusCode;
  // The SDK may keep the code only in the message.
  const words = status === undefined ? `${String(code)} ${message}`.split(/\W/) : [];
  const broken = words.find(isConnectionCode);
  if (broken !== undefined) return `the bundle store cannot be reached (${broken})`;
  if (status === 401 || status === 403) return 'the bundle store refuses the credentials of this service';
  return `the bundle store failed (${name}${status === undefined ? '' : `, HTTP ${status}`})`;
}

/** Returns the value of a request. @throws BundleStoreError */
export async function reach<T>(request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    throw s3Error(error);
  }
}
