// Contract 7, "Secrets": seals an app's secrets for one worker. X25519 (RFC 7748), HKDF-SHA256 (RFC 5869) and AES-256-GCM, in the manner of
// HPKE (RFC 9180): each box has a key pair of its own, so a key seals once (docs/decisions/0062-secrets-are-sealed-for-each-worker.md).
import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { UnsealError } from './sealed-box.ts';

const VERSION = 1;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + KEY_BYTES + TAG_BYTES;
/** The DER of an X25519 public key is this prefix and 32 bytes (RFC 8410). */
const DER_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');
const PUBLIC_KEY = /^[A-Za-z0-9+/]{43}=$/;

/** The receiver of a box. A box does not open for another app, worker or revision. */
export interface SealedCopy {
  readonly project: string;
  readonly app: string;
  readonly workerId: string;
}

const rawOf = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' }).subarray(DER_PREFIX.length);

const publicKeyOf = (raw: Buffer): KeyObject =>
  createPublicKey({ key: Buffer.concat([DER_PREFIX, raw]), type: 'spki', format: 'der' });

/** Derives key and nonce. The salt has both public keys, so that no key can be exchanged. */
function derived(shared: Buffer, ephemeral: Buffer, receiver: Buffer): { key: Buffer; nonce: Buffer } {
  const salt = Buffer.concat([ephemeral, receiver]);
  const bytes = Buffer.from(hkdfSync('sha256', shared, salt, 'inference-proxy worker-box', KEY_BYTES + NONCE_BYTES));
  return { key: bytes.subarray(0, KEY_BYTES), nonce: bytes.subarray(KEY_BYTES) };
}

const associated = ({ project, app, workerId }: SealedCopy): Buffer =>
  Buffer.concat([Buffer.of(VERSION), Buffer.from(JSON.stringify([project, app, workerId]))]);

/**
 * Seals for the owner of a public key. Returns base64 of version (1 byte), public key of the box (32), tag (16) and ciphertext.
 *
 * @param publicKey base64 of 32 bytes
 * @throws Error if the public key is malformed, or is a point of low order
 */
export function sealForWorker(publicKey: string, secret: Buffer, of: SealedCopy): string {
  if (!PUBLIC_KEY.test(publicKey)) throw new Error('the public key must be the base64 of 32 bytes');
  const receiver = Buffer.from(publicKey, 'base64');
  const own = generateKeyPairSync('x25519');
  const ephemeral = rawOf(own.publicKey);
  const shared = diffieHellman({ privateKey: own.privateKey, publicKey: publicKeyOf(receiver) });
  const { key, nonce } = derived(shared, ephemeral, receiver);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associated(of));
  const text = Buffer.concat([cipher.update(secret), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), ephemeral, cipher.getAuthTag(), text]).toString('base64');
}

/** The key pair of a worker. The private key never leaves the process. */
export class WorkerKeys {
  readonly #private: KeyObject;
  readonly #public: Buffer;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('x25519');
    this.#private = privateKey;
    this.#public = rawOf(publicKey);
  }

  /** The public key, base64 of 32 bytes. */
  get publicKey(): string {
    return this.#public.toString('base64');
  }

  /** Returns the sealed bytes. @throws UnsealError if the text is not a box for this key and receiver, or was altered */
  open(sealed: string, of: SealedCopy): Buffer {
    const box = Buffer.from(sealed, 'base64');
    if (box.length < HEAD_BYTES || box[0] !== VERSION) throw new UnsealError('this is not a box for a worker', true);
    const ephemeral = box.subarray(1, 1 + KEY_BYTES);
    try {
      const shared = diffieHellman({ privateKey: this.#private, publicKey: publicKeyOf(ephemeral) });
      const { key, nonce } = derived(shared, ephemeral, this.#public);
      const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(associated(of));
      decipher.setAuthTag(box.subarray(1 + KEY_BYTES, HEAD_BYTES));
      return Buffer.concat([decipher.update(box.subarray(HEAD_BYTES)), decipher.final()]);
    } catch {
      // OpenSSL's message names the step that failed, which helps only an attacker.
      throw new UnsealError('the box is for another worker, app or project, or was altered', true);
    }
  }
}
