// Contract 6: selects the keys that verify tokens by the settings.
import type { Logger } from '@inference-proxy/platform';
import { KeySet } from './key-set.ts';
import { type NamedKey, NamedKeys } from './named-keys.ts';
import { FixedKey, secretKey, type TokenKey, type TokenKeys } from './token-keys.ts';

/** The settings that decide the keys. */
export interface KeySettings {
  readonly JWT_SECRET?: string | undefined;
  readonly JWT_SECRETS?: readonly NamedKey[] | undefined;
  readonly JWT_PUBLIC_KEY?: TokenKey | undefined;
  readonly JWT_JWKS_URL?: URL | undefined;
  readonly JWT_JWKS_MAX_AGE_S: number;
  readonly JWT_JWKS_COOLDOWN_S: number;
}

export function configuredKeys(settings: KeySettings, logger: Logger): TokenKeys {
  const main = mainKeys(settings, logger);
  return settings.JWT_SECRETS === undefined ? main : new NamedKeys(settings.JWT_SECRETS, main);
}

function mainKeys(settings: KeySettings, logger: Logger): TokenKeys {
  const { JWT_SECRET, JWT_PUBLIC_KEY, JWT_JWKS_URL } = settings;
  if (JWT_JWKS_URL !== undefined) {
    const times = { maxAgeMs: settings.JWT_JWKS_MAX_AGE_S * 1000, cooldownMs: settings.JWT_JWKS_COOLDOWN_S * 1000 };
    return new KeySet(JWT_JWKS_URL, times, logger);
  }
  if (JWT_PUBLIC_KEY !== undefined) return new FixedKey(JWT_PUBLIC_KEY);
  if (JWT_SECRET !== undefined) return new FixedKey(secretKey(JWT_SECRET));
  throw new Error('the settings name no key for tokens');
}
