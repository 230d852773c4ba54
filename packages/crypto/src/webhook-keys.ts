// Contract 4, "Signatures": the key pairs of the signature `v1a` of Standard Webhooks (Ed25519, RFC 8032). Receivers need no secret for it.
import { createHash, createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign } from 'node:crypto';

/** The label that separates these keys from every other use of `SECRETS_KEY`. */
const LABEL = 'inference-proxy webhook signature v1a';
const KEY_BYTES = 32;
/** The PKCS #8 form of an Ed25519 private key is this head and the 32 bytes of the seed (RFC 8410, section 7). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');
const ID_BYTES = 8;

/** A public key as `GET /.well-known/webhook-keys` lists it. */
export interface WebhookKey {
  /** The start of the SHA-256 of the public key, in hexadecimal. */
  readonly id: string;
  /** `whpk_` and the base64 of the 32 bytes of the public key. */
  readonly key: string;
}

/**
 * The key pairs that sign deliveries: one for each key of `SECRETS_KEY`, derived with HKDF-SHA-256 (RFC 5869).
 * Decision: docs/decisions/0064-signing-keys-are-derived.md.
 */
export class WebhookKeys {
  readonly #private: readonly KeyObject[];
  /** Newest first. */
  readonly listed: readonly WebhookKey[];

  /** @param keys as `parseSecretKeys` returns them, newest first */
  constructor(keys: readonly Buffer[]) {
    this.#private = keys.map(privateKey);
    this.listed = this.#private.map(listedKey);
  }

  /**
   * Resolves with the signatures of a delivery, separated by spaces: `v1a,` and the base64 of the Ed25519 signature of each key.
   * During a rotation, a receiver that knows only the older key therefore still verifies the delivery.
   * OpenSSL signs in a thread of Node, because a body of megabytes takes many milliseconds.
   *
   * @param deliveryId as in `webhook-id`
   * @param timestamp Unix seconds, as in `webhook-timestamp`
   * @param body the bytes that are sent
   */
  async sign(deliveryId: string, timestamp: number, body: Buffer): Promise<string> {
    const content = Buffer.concat([Buffer.from(`${deliveryId}.${timestamp}.`), body]);
    const signatures = await Promise.all(this.#private.map((key) => signature(key, content)));
    return signatures.map((one) => `v1a,${one.toString('base64')}`).join(' ');
  }
}

const signature = (key: KeyObject, content: Buffer): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    sign(null, content, key, (error, made) => (error ? reject(error) : resolve(made)));
  });

function privateKey(secret: Buffer): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), LABEL, KEY_BYTES));
  return createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
}

function listedKey(key: KeyObject): WebhookKey {
  const bytes = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-KEY_BYTES);
  const id = createHash('sha256')
    .update(bytes)
    .digest('hex')
    .slice(0, 2 * ID_BYTES);
  return { id, key: `whpk_${bytes.toString('base64')}` };
}
