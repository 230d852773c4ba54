// Contract 4, "Signatures", and 7, "Secrets": seals webhook secrets and secrets of apps at rest with AES-256-GCM (NIST SP 800-38D) and a random nonce. A key id allows rotation.
// The delivery that the secret signs is the associated data.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

const VERSION = 2;
/** The version of boxes that are bound to their run only. Deliveries with such boxes may still wait after an upgrade. */
const VERSION_OF_RUN = 1;
/** The version of boxes with a secret of an app (contract 7). */
const VERSION_OF_APP = 3;
const VERSIONS: readonly (number | undefined)[] = [VERSION, VERSION_OF_RUN, VERSION_OF_APP];
const KEY_BYTES = 32;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES;
/** 32 bytes are 43 base64 digits and one `=`. */
const KEY_TEXT = /^[A-Za-z0-9+/]{43}=$/;

/** The delivery that a secret signs. A box does not open in the record of another delivery, or after a change of its delivery. */
export interface SealedFor {
  readonly project: string;
  readonly app: string;
  readonly runId: string;
  /** The receiver's URL, as the delivery's record has it. */
  readonly url: string;
}

/** A secret of an app. Its box does not open under another name, or for another app. */
export interface SecretOfApp {
  readonly project: string;
  readonly app: string;
  readonly name: string;
}

/** Reports that a box cannot be opened. The message contains neither the secret nor a key. */
export class UnsealError extends Error {
  override readonly name = 'UnsealError';
  /** True if the box or its delivery was changed. No key can then open the box. */
  readonly altered: boolean;

  constructor(message: string, altered = false) {
    super(message);
    this.altered = altered;
  }
}

/**
 * Parses the keys of `SECRETS_KEY`: standard base64 of 32 bytes each (`openssl rand -base64 32`), separated by commas, newest first.
 * Rejects hexadecimal: with a single format, no text can mean two keys.
 *
 * @throws Error that names the position of a wrong key and does not show the key
 */
export function parseSecretKeys(text: string): Buffer[] {
  const keys = text.split(',').map((part, index) => {
    const key = part.trim();
    if (!KEY_TEXT.test(key)) throw new Error(`key ${index + 1} must be the base64 of ${KEY_BYTES} bytes`);
    return Buffer.from(key, 'base64');
  });
  const ids = new Set(keys.map((key) => keyId(key).toString('hex')));
  if (ids.size !== keys.length) throw new Error('the list contains the same key twice');
  return keys;
}

/** Returns an id that does not reveal the key: the start of a hash with a separate label. */
const keyId = (key: Buffer): Buffer =>
  createHash('sha256').update('sealed-box key id\0').update(key).digest().subarray(0, KEY_ID_BYTES);

/** Seals with the newest key. Opens with any key of the list. */
export class SealedBox {
  readonly #newest: { readonly id: Buffer; readonly key: KeyObject };
  readonly #keys: ReadonlyMap<string, KeyObject>;

  /** @param keys as `parseSecretKeys` returns them, newest first, at least one */
  constructor(keys: readonly Buffer[]) {
    const [newest] = keys;
    if (!newest || keys.some((key) => key.length !== KEY_BYTES))
      throw new Error(`keys of ${KEY_BYTES} bytes are needed`);
    this.#newest = { id: keyId(newest), key: createSecretKey(newest) };
    this.#keys = new Map(keys.map((key) => [keyId(key).toString('hex'), createSecretKey(key)]));
  }

  /** Returns whether a text of `seal` has the newest key. Otherwise it must be sealed again before its key can be removed. */
  hasNewestKey(sealed: string): boolean {
    return Buffer.from(sealed, 'base64')
      .subarray(1, 1 + KEY_ID_BYTES)
      .equals(this.#newest.id);
  }

  /** Returns base64 of version (1 byte), key id (4), nonce (12), tag (16) and ciphertext. */
  seal(secret: Buffer, of: SealedFor | SecretOfApp): string {
    const version = 'name' in of ? VERSION_OF_APP : VERSION;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#newest.key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associated(version, this.#newest.id, of));
    const text = Buffer.concat([cipher.update(secret), cipher.final()]);
    return Buffer.concat([Buffer.of(version), this.#newest.id, nonce, cipher.getAuthTag(), text]).toString('base64');
  }

  /**
   * Returns the secret.
   *
   * @param sealed the text that `seal` returned
   * @param of the same delivery or secret as for `seal`
   * @throws UnsealError if the text is not a box, was altered, or was sealed with a missing key or for another delivery
   */
  open(sealed: string, of: SealedFor | SecretOfApp): Buffer {
    const box = Buffer.from(sealed, 'base64');
    const [version] = box;
    const isOfApp = version === VERSION_OF_APP;
    if (box.length < HEAD_BYTES || version === undefined || !VERSIONS.includes(version) || isOfApp !== 'name' in of)
      throw new UnsealError('this is not a sealed box', true);
    const id = box.subarray(1, 1 + KEY_ID_BYTES);
    const nonce = box.subarray(1 + KEY_ID_BYTES, 1 + KEY_ID_BYTES + NONCE_BYTES);
    const tag = box.subarray(HEAD_BYTES - TAG_BYTES, HEAD_BYTES);
    const key = this.#keys.get(id.toString('hex'));
    if (!key) throw new UnsealError('sealed with a key that is not among SECRETS_KEY');
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(
      version === VERSION_OF_RUN && 'runId' in of ? associatedWithRun(id, of.runId) : associated(version, id, of),
    );
    decipher.setAuthTag(tag);
    try {
      return Buffer.concat([decipher.update(box.subarray(HEAD_BYTES)), decipher.final()]);
    } catch {
      // OpenSSL's message names the step that failed, which helps only an attacker.
      throw new UnsealError('the sealed secret, or the URL, app or run that it was sealed for, was altered', true);
    }
  }
}

/** Binds the version and the key id too, so that neither can be exchanged. JSON keeps the four texts apart. */
function associated(version: number, id: Buffer, of: SealedFor | SecretOfApp): Buffer {
  const names = 'name' in of ? [of.project, of.app, of.name] : [of.project, of.app, of.runId, of.url];
  return Buffer.concat([Buffer.of(version), id, Buffer.from(JSON.stringify(names))]);
}

const associatedWithRun = (id: Buffer, runId: string): Buffer =>
  Buffer.concat([Buffer.of(VERSION_OF_RUN), id, Buffer.from(runId)]);
