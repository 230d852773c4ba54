// Contract 6, `JWT_SECRETS`: further keys of callers' tokens. Each key has a name (`kid`), and some keys are for one project only.
import { isProjectName, PROJECT_NAME_FORM } from '@inference-proxy/contracts';
import { type Candidates, secretKey, type TokenKeys } from './token-keys.ts';
import type { TokenHeader } from './token-text.ts';

export interface NamedKey {
  /** The key's name in the header of tokens. */
  readonly kid: string;
  readonly secret: string;
  /** Restricts the key to tokens for this project. */
  readonly project?: string;
}

const ENTRY = /^([A-Za-z0-9._-]{1,64})(?:@([^:@,]+))?:(.+)$/;
/** RFC 7518 §3.2: a key of HS256 has at least 256 bits. */
const SHORTEST = 32;

/**
 * Reads `<kid>:<secret>` and `<kid>@<project>:<secret>`, separated by commas.
 *
 * @throws Error that names the position of a wrong entry, never a secret
 */
export function namedKeysOf(text: string): readonly NamedKey[] {
  const keys = text.split(',').map((part, at) => {
    const [, kid, project, secret = ''] = ENTRY.exec(part.trim()) ?? [];
    if (kid === undefined) throw new Error(`entry ${at + 1} must be <kid>:<secret> or <kid>@<project>:<secret>`);
    if (secret.length < SHORTEST)
      throw new Error(`the secret of entry ${at + 1} must have at least ${SHORTEST} characters`);
    if (project !== undefined && !isProjectName(project))
      throw new Error(`the project of entry ${at + 1} must have ${PROJECT_NAME_FORM}`);
    return { kid, secret, ...(project !== undefined && { project }) };
  });
  if (new Set(keys.map(({ kid }) => kid)).size !== keys.length) throw new Error('two entries have the same kid');
  return keys;
}

/** Finds keys by name. The other keys verify a token that names none of these keys. */
export class NamedKeys implements TokenKeys {
  readonly #named: ReadonlyMap<string, Candidates>;
  readonly #others: TokenKeys;

  constructor(keys: readonly NamedKey[], others: TokenKeys) {
    this.#others = others;
    this.#named = new Map(
      keys.map(({ kid, secret, project }) => [
        kid,
        {
          keys: [{ ...secretKey(secret), ...(project !== undefined && { project }) }],
          until: Number.POSITIVE_INFINITY,
        },
      ]),
    );
  }

  candidates(header: TokenHeader): Candidates | Promise<Candidates> {
    const named = header.kid === undefined ? undefined : this.#named.get(header.kid);
    return named ?? this.#others.candidates(header);
  }

  renew(): void {
    this.#others.renew?.();
  }
}
