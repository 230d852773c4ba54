// Contract 6, "Tokens": makes or revokes a bearer token with the secret of this gateway. In the image: `token --project demo`.
import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { isProjectName, PROJECT_NAME_FORM } from '@inference-proxy/contracts';
import { port, readSettings, SettingsError, secret, text } from '@inference-proxy/platform';
import { JwtService } from '@nestjs/jwt';
import { z } from 'zod';
import { type NamedKey, namedKeysOf } from './auth/named-keys.ts';

const USAGE = `Usage: token --project <project id, or * for all> [--ttl <seconds, default 3600>] [--scope <call runs:read runs:write>]
             [--sub <who>] [--kid <name of a key in JWT_SECRETS; default: the project's own key, if there is one>]
       token --project <project id> --revoke <token, or its jti>
       token --project <project id> --revoke-subject <the sub of tokens that were issued so far>`;

const SCHEMA = z.object({
  JWT_SECRET: secret(
    'the secret that signs tokens; with a public key or a key set, the holder of the private key signs them',
  ),
  JWT_SECRETS: secret().optional(),
  JWT_ISSUER: text().optional(),
  JWT_AUDIENCE: text().optional(),
  PORT: port().prefault('8080'),
});
type Settings = z.output<typeof SCHEMA>;

/** Lifetime of the token for the revoking request, s. */
const OWN_TTL_S = 60;

class Refused extends Error {}

function options() {
  try {
    const { values } = parseArgs({
      options: {
        project: { type: 'string' },
        ttl: { type: 'string', default: '3600' },
        scope: { type: 'string' },
        sub: { type: 'string', default: 'operator' },
        kid: { type: 'string' },
        revoke: { type: 'string' },
        'revoke-subject': { type: 'string' },
      },
    });
    const ttlS = Number(values.ttl);
    const revokes = [values.revoke, values['revoke-subject']].filter((value) => value !== undefined);
    const one = revokes.length === 0 || (revokes.length === 1 && revokes[0] !== '' && values.project !== '*');
    if (values.project && Number.isInteger(ttlS) && ttlS > 0 && one)
      return { ...values, project: values.project, ttlS };
  } catch {
    // The usage below shows the right form.
  }
  throw new Refused(USAGE);
}

type Options = ReturnType<typeof options>;

function namedKeys({ JWT_SECRETS }: Settings): readonly NamedKey[] {
  try {
    return JWT_SECRETS === undefined ? [] : namedKeysOf(JWT_SECRETS);
  } catch (error) {
    throw new Refused(`JWT_SECRETS is wrong: ${(error as Error).message}`);
  }
}

/** Returns the named key, or the project's own key. Returns undefined if `JWT_SECRET` signs. */
function signingKey({ kid, project }: Options, keys: readonly NamedKey[]): NamedKey | undefined {
  if (kid === undefined) return keys.find((key) => key.project === project);
  const found = keys.find((key) => key.kid === kid);
  if (found === undefined) throw new Refused(`JWT_SECRETS has no key with the kid ${JSON.stringify(kid)}.`);
  if (found.project !== undefined && found.project !== project)
    throw new Refused(`The key ${JSON.stringify(kid)} signs for the project ${JSON.stringify(found.project)} only.`);
  return found;
}

function token(asked: Options, settings: Settings): string {
  const { project, ttlS, scope, sub } = asked;
  const { JWT_SECRET, JWT_ISSUER, JWT_AUDIENCE } = settings;
  const named = signingKey(asked, namedKeys(settings));
  return new JwtService({}).sign(
    { sub, project_id: project, ...(scope !== undefined && { scope }) },
    {
      secret: named?.secret ?? JWT_SECRET,
      ...(named && { keyid: named.kid }),
      jwtid: randomUUID(),
      algorithm: 'HS256',
      expiresIn: ttlS,
      ...(JWT_ISSUER !== undefined && { issuer: JWT_ISSUER }),
      ...(JWT_AUDIENCE !== undefined && { audience: JWT_AUDIENCE }),
    },
  );
}

/** Returns the path of the revocation. Only the id and the expiry of a whole token are read, and nothing is verified. */
function revocationPath({ project, revoke, 'revoke-subject': sub }: Options): string {
  const path = `/v4/${project}/tokens`;
  if (revoke === undefined) return `${path}?sub=${encodeURIComponent(sub ?? '')}`;
  if (revoke.split('.').length !== 3) return `${path}/${encodeURIComponent(revoke)}`;
  const claims = new JwtService({}).decode<{ jti?: unknown; exp?: unknown } | null>(revoke);
  if (typeof claims?.jti !== 'string')
    throw new Refused('The token has no `jti`: revoke all tokens of its subject with --revoke-subject.');
  return `${path}/${encodeURIComponent(claims.jti)}${Number.isSafeInteger(claims.exp) ? `?exp=${claims.exp}` : ''}`;
}

/** Revokes at the gateway of this machine. Returns the text to print. */
async function revoked(asked: Options, settings: Settings): Promise<string> {
  const own = token({ ...asked, scope: 'tokens:write', ttlS: OWN_TTL_S }, settings);
  const url = `http://127.0.0.1:${settings.PORT}${revocationPath(asked)}`;
  const answer = await fetch(url, { method: 'DELETE', headers: { authorization: `Bearer ${own}` } }).catch((error) => {
    throw new Refused(`No gateway answers on port ${settings.PORT} (PORT): ${error.cause?.message ?? error.message}`);
  });
  if (answer.status !== 204)
    throw new Refused(`The gateway refused the revocation (${answer.status}): ${await answer.text()}`);
  return 'Revoked. The revocation reaches every gateway within 5 seconds.';
}

try {
  const asked = options();
  const { project } = asked;
  if (project !== '*' && !isProjectName(project))
    throw new Refused(`The project name ${JSON.stringify(project)} must have ${PROJECT_NAME_FORM}.`);
  const settings = readSettings(SCHEMA);
  const revokes = asked.revoke !== undefined || asked['revoke-subject'] !== undefined;
  process.stdout.write(`${revokes ? await revoked(asked, settings) : token(asked, settings)}\n`);
} catch (error) {
  if (!(error instanceof Refused || error instanceof SettingsError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
