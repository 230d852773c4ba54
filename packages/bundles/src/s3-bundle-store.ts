// Contract 7: bundles in a bucket of an S3-compatible store (`BUNDLES_URL=s3://bucket/prefix`). A bundle is the object `<prefix>/<digest>`.
import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import {
  type BundleStore,
  type BundleWriter,
  checkedDigest,
  isDigest,
  MissingBundle,
  verified,
} from './bundle-store.ts';
import { reach, s3Error } from './s3-errors.ts';

/** A bucket and the access to it. */
export interface S3Place {
  readonly bucket: string;
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string;
  /** Absent: AWS. A store with an endpoint of its own is called with the bucket in the path. */
  readonly endpoint?: string;
  readonly region: string;
  /** Absent: the sources of the AWS SDK, such as the role of the machine or of the pod. */
  readonly credentials?: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
}

/** S3 takes parts of at least 5 MiB. Each upload keeps one part in memory. */
const PART_BYTES = 8 * 1024 * 1024;
/** A store that cannot be connected within this time counts as away, ms. */
const CONNECT_MS = 5_000;
/** The longest silence of a store during a request, ms. */
const SILENCE_MS = 60_000;

export class S3BundleStore implements BundleStore {
  readonly #place: S3Place;
  readonly #client: S3Client;

  constructor(place: S3Place) {
    this.#place = place;
    const { endpoint, region, credentials } = place;
    this.#client = new S3Client({
      region,
      ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
      ...(credentials && { credentials }),
      requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
      // Every read verifies the SHA-256 of the whole bundle. Not every store knows the newer checksums of AWS.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
  }

  async write(): Promise<BundleWriter> {
    return new S3Writer(
      this.#client,
      this.#place.bucket,
      this.#key(`incoming/${randomBytes(16).toString('hex')}`),
      (digest) => this.#key(checkedDigest(digest)),
    );
  }

  async get(digest: string): Promise<Readable> {
    const Key = this.#key(checkedDigest(digest));
    try {
      const { Body } = await this.#client.send(new GetObjectCommand({ Bucket: this.#place.bucket, Key }));
      return verified(Body as Readable, digest);
    } catch (error) {
      throw (error as Error).name === 'NoSuchKey' ? new MissingBundle(digest) : s3Error(error);
    }
  }

  async *list(): AsyncGenerator<string> {
    const start = this.#key('');
    for await (const { key } of this.#objects(start)) {
      const name = key.slice(start.length);
      if (isDigest(name)) yield name;
    }
  }

  async remove(digest: string): Promise<void> {
    await this.#delete(this.#key(checkedDigest(digest)));
  }

  async removeInterrupted(olderThanMs: number): Promise<number> {
    const { bucket } = this.#place;
    const before = Date.now() - olderThanMs;
    const prefix = this.#key('incoming/');
    let removed = 0;
    const { Uploads: uploads = [] } = await reach(() =>
      this.#client.send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix })),
    );
    for (const { Key, UploadId, Initiated } of uploads) {
      if (Initiated === undefined || Initiated.getTime() > before) continue;
      const abort = new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId });
      await reach(() => this.#client.send(abort));
      removed++;
    }
    for await (const { key, modifiedMs } of this.#objects(prefix)) {
      if (modifiedMs > before) continue;
      await this.#delete(key);
      removed++;
    }
    return removed;
  }

  async *#objects(prefix: string): AsyncGenerator<{ key: string; modifiedMs: number }> {
    try {
      const pages = paginateListObjectsV2({ client: this.#client }, { Bucket: this.#place.bucket, Prefix: prefix });
      for await (const { Contents = [] } of pages)
        for (const { Key = '', LastModified } of Contents) yield { key: Key, modifiedMs: LastModified?.getTime() ?? 0 };
    } catch (error) {
      throw s3Error(error);
    }
  }

  async #delete(key: string): Promise<void> {
    await reach(() => this.#client.send(new DeleteObjectCommand({ Bucket: this.#place.bucket, Key: key })));
  }

  #key(name: string): string {
    const { prefix } = this.#place;
    return prefix === '' ? name : `${prefix}/${name}`;
  }
}

/**
 * Writes one bundle part by part. A bundle of one part is written under its digest at once. The parts of a larger bundle become an object
 * below `incoming/`, which the store copies to the digest, because the digest is known only after the last byte.
 */
class S3Writer implements BundleWriter {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #incoming: string;
  readonly #keyOf: (digest: string) => string;
  /** Reused for every part, so that the memory of an upload does not grow. */
  readonly #part = Buffer.allocUnsafeSlow(PART_BYTES);
  #filled = 0;
  /** Set after the first full part. */
  #uploadId: string | undefined;
  #isCompleted = false;
  readonly #tags: { readonly ETag: string | undefined; readonly PartNumber: number }[] = [];

  constructor(client: S3Client, bucket: string, incoming: string, keyOf: (digest: string) => string) {
    this.#client = client;
    this.#bucket = bucket;
    this.#incoming = incoming;
    this.#keyOf = keyOf;
  }

  async write(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      // A full part is sent only when further bytes come. So a bundle of one part needs no copy.
      if (this.#filled === PART_BYTES) await reach(() => this.#sendPart());
      const taken = chunk.copy(this.#part, this.#filled, at);
      this.#filled += taken;
      at += taken;
    }
  }

  async commit(digest: string): Promise<void> {
    await reach(() => (this.#uploadId === undefined ? this.#put(digest) : this.#complete(digest)));
  }

  async abort(): Promise<void> {
    const at = { Bucket: this.#bucket, Key: this.#incoming };
    const UploadId = this.#uploadId;
    if (UploadId === undefined) return;
    const command = this.#isCompleted
      ? this.#client.send(new DeleteObjectCommand(at))
      : this.#client.send(new AbortMultipartUploadCommand({ ...at, UploadId }));
    await command.catch(() => {});
  }

  async #put(digest: string): Promise<void> {
    const Body = this.#part.subarray(0, this.#filled);
    await this.#client.send(new PutObjectCommand({ Bucket: this.#bucket, Key: this.#keyOf(digest), Body }));
  }

  async #sendPart(): Promise<void> {
    const at = { Bucket: this.#bucket, Key: this.#incoming };
    if (this.#uploadId === undefined) {
      const { UploadId } = await this.#client.send(new CreateMultipartUploadCommand(at));
      this.#uploadId = UploadId;
    }
    const PartNumber = this.#tags.length + 1;
    const Body = this.#part.subarray(0, this.#filled);
    const { ETag } = await this.#client.send(
      new UploadPartCommand({ ...at, UploadId: this.#uploadId, PartNumber, Body }),
    );
    this.#tags.push({ ETag, PartNumber });
    this.#filled = 0;
  }

  async #complete(digest: string): Promise<void> {
    await this.#sendPart();
    const at = { Bucket: this.#bucket, Key: this.#incoming };
    const MultipartUpload = { Parts: this.#tags };
    await this.#client.send(new CompleteMultipartUploadCommand({ ...at, UploadId: this.#uploadId, MultipartUpload }));
    this.#isCompleted = true;
    const CopySource = `${this.#bucket}/${this.#incoming.split('/').map(encodeURIComponent).join('/')}`;
    await this.#client.send(new CopyObjectCommand({ Bucket: this.#bucket, Key: this.#keyOf(digest), CopySource }));
    // The bundle is stored. A copy that stays below `incoming/` is collected later.
    await this.#client.send(new DeleteObjectCommand(at)).catch(() => {});
    this.#uploadId = undefined;
  }
}
