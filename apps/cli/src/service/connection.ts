// Contract 7, "Command line": the service and the token of a command come from the environment, or from a profile.
import { type Profile, readProfiles } from '../profiles/profiles.ts';
import type { Settings } from '../settings.ts';
import { Failure } from './failures.ts';
import type { Connection } from './service.ts';

/** The gateway of a development stack. */
export const DEVELOPMENT_URL = 'http://127.0.0.1:8080';

export interface Asked {
  readonly project?: string;
  readonly profile?: string;
}

/** Returns a URL without a slash at the end. @throws Failure if the text is not a URL of a service */
export function serviceUrl(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable = url && /^https?:$/.test(url.protocol) && !url.username && !url.search && !url.hash;
  if (!isUsable)
    throw new Failure('usage', `${source} is wrong: expected a URL such as ${DEVELOPMENT_URL}, got "${text}"`);
  return text.replace(/\/$/, '');
}

/** Returns the only project of a token, without verification: the gateway verifies tokens. */
export function projectOf(token: string): string | undefined {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<
      string,
      unknown
    >;
    const [project, ...more] = [claims.project_id].flat();
    return typeof project === 'string' && project !== '*' && more.length === 0 ? project : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the connection of a command.
 *
 * A token of a profile is only sent to the URL of this profile. Otherwise a changed `INFERENCE_PROXY_URL` would send the token to another host.
 *
 * @throws Failure that names what is missing
 */
export function connectionOf(settings: Settings, asked: Asked): Connection {
  const profile = settings.token === undefined || asked.profile !== undefined ? profileOf(settings, asked) : undefined;
  const found = profile ?? environmentOf(settings);
  if (found === undefined)
    throw new Failure('denied', 'There is no token: run inference-proxy login, or set INFERENCE_PROXY_TOKEN');
  const project = asked.project ?? found.project ?? projectOf(found.token);
  if (project === undefined)
    throw new Failure('usage', 'The token does not name exactly one project: name the project with --project');
  return { url: found.url, token: found.token, project };
}

function environmentOf({ url, token }: Settings): Profile | undefined {
  if (token === undefined) return undefined;
  return { url: serviceUrl(url ?? DEVELOPMENT_URL, 'INFERENCE_PROXY_URL'), token };
}

function profileOf(settings: Settings, { profile: name = 'default' }: Asked): Profile | undefined {
  const { profiles, path } = readProfiles(settings.configDir);
  const profile = profiles[name];
  if (profile === undefined) {
    if (name === 'default') return undefined;
    const known = Object.keys(profiles).join(', ') || 'none';
    throw new Failure('usage', `The profile "${name}" does not exist in ${path}. Profiles: ${known}`);
  }
  if (settings.url !== undefined && serviceUrl(settings.url, 'INFERENCE_PROXY_URL') !== profile.url)
    throw new Failure(
      'usage',
      `INFERENCE_PROXY_URL is ${settings.url}, but the profile "${name}" is for ${profile.url}: set INFERENCE_PROXY_TOKEN too, or unset INFERENCE_PROXY_URL`,
    );
  return profile;
}
