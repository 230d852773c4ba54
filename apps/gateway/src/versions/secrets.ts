// Contract 7, "Secrets": sets, removes and lists the secrets of an app. Values never leave the gateway in the clear.
import type { ServerResponse } from 'node:http';
import { isSecretName, SECRET_NAME_FORM, ServiceError } from '@inference-proxy/contracts';
import type { SealedBox } from '@inference-proxy/crypto';
import type { SecretStore } from '@inference-proxy/store';
import { z } from 'zod';
import { checkNames } from './versions.ts';

/** The longest value, in bytes. Linux takes at most 128 KiB for one variable. */
const LONGEST_VALUE = 16 * 1024;
const MOST_SECRETS = 64;
/** JSON may write each byte of a value as six characters. */
const LARGEST_BODY = 7 * LONGEST_VALUE;

const bodySchema = z.strictObject({ value: z.string() });

/** The names in a secret's path. */
export interface SecretPath {
  readonly project: string;
  readonly app: string;
  readonly name: string;
}

/** Reads a body of at most `maxBytes`. */
export type ReadBody = (raw: ServerResponse, maxBytes: number) => Promise<Buffer>;

export class AppSecrets {
  readonly #store: SecretStore;
  readonly #box: SealedBox;
  readonly #readBody: ReadBody;

  constructor(store: SecretStore, box: SealedBox, readBody: ReadBody) {
    this.#store = store;
    this.#box = box;
    this.#readBody = readBody;
  }

  /** Returns the answer of `GET …/secrets`. @throws ServiceError `not_found`, `unavailable` */
  async list(project: string, app: string): Promise<object> {
    checkNames(project, app);
    const { secrets } = await this.#store.state(project, app);
    return {
      secrets: secrets.map(({ name, updatedAt }) => ({ name, updated_at: new Date(updatedAt).toISOString() })),
    };
  }

  /** Sets a secret to the value in the request's body. @throws ServiceError `not_found`, `invalid_request`, `payload_too_large`, `unavailable` */
  async set({ project, app, name }: SecretPath, raw: ServerResponse): Promise<void> {
    checkNames(project, app);
    if (!isSecretName(name)) throw refused(`The name of the secret must have ${SECRET_NAME_FORM}.`);
    const value = valueIn(await this.#readBody(raw, LARGEST_BODY));
    const { secrets } = await this.#store.state(project, app);
    if (secrets.length >= MOST_SECRETS && !secrets.some((secret) => secret.name === name))
      throw refused(`The app has ${MOST_SECRETS} secrets, and more are not allowed; remove one.`);
    await this.#store.set(project, app, name, this.#box.seal(value, { project, app, name }));
  }

  /** @throws ServiceError `not_found`, `unavailable` */
  async remove({ project, app, name }: SecretPath): Promise<void> {
    checkNames(project, app);
    if (!isSecretName(name) || !(await this.#store.remove(project, app, name)))
      throw new ServiceError('not_found', `The app \`${app}\` has no secret \`${name}\`.`);
  }
}

/** Returns the value in a body. No message shows a part of the body. */
function valueIn(body: Buffer): Buffer {
  let found: unknown;
  try {
    found = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw refused('The body must be JSON: `{"value": "…"}`.');
  }
  const { success, data } = bodySchema.safeParse(found);
  if (!success) throw refused('The body must have one member, `value`, which is a string.');
  const value = Buffer.from(data.value);
  if (value.length > LONGEST_VALUE) throw refused(`The value must have at most ${LONGEST_VALUE} bytes.`);
  if (value.includes(0)) throw refused('The value must not contain the character U+0000, because no variable can.');
  return value;
}

const refused = (message: string): ServiceError => new ServiceError('invalid_request', message);
