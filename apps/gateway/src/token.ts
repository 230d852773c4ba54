// Contract 6: a bearer token for callers, signed with the secret that this gateway verifies with. In the image: `token --project demo`.
import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { isProjectName, PROJECT_NAME_FORM } from '@inference-proxy/contracts';
import { readSettings, SettingsError, secret, text } from '@inference-proxy/platform';
import { JwtService } from '@nestjs/jwt';
import { z } from 'zod';

const USAGE =
  'Usage: token --project <project id, or * for all> [--ttl <seconds, default 3600>] [--scope <call runs:read runs:write>] [--sub <who>]';

const SCHEMA = z.object({
  JWT_SECRET: secret(
    'the secret that tokens are signed with; with a public key or a key set, whoever holds the private key signs them',
  ),
  JWT_ISSUER: text().optional(),
  JWT_AUDIENCE: text().optional(),
});

class Refused extends Error {}

function options() {
  try {
    const { values } = parseArgs({
      options: {
        project: { type: 'string' },
        ttl: { type: 'string', default: '3600' },
        scope: { type: 'string' },
        sub: { type: 'string', default: 'operator' },
      },
    });
    const ttlS = Number(values.ttl);
    if (values.project && Number.isInteger(ttlS) && ttlS > 0) return { ...values, project: values.project, ttlS };
  } catch {
    // Said below, with what would be right.
  }
  throw new Refused(USAGE);
}

function token(): string {
  const { project, ttlS, scope, sub } = options();
  if (project !== '*' && !isProjectName(project))
    throw new Refused(`The project name ${JSON.stringify(project)} must have ${PROJECT_NAME_FORM}.`);
  const { JWT_SECRET, JWT_ISSUER, JWT_AUDIENCE } = readSettings(SCHEMA);
  return new JwtService({}).sign(
    { sub, project_id: project, ...(scope !== undefined && { scope }) },
    {
      secret: JWT_SECRET,
      algorithm: 'HS256',
      expiresIn: ttlS,
      ...(JWT_ISSUER !== undefined && { issuer: JWT_ISSUER }),
      ...(JWT_AUDIENCE !== undefined && { audience: JWT_AUDIENCE }),
    },
  );
}

try {
  process.stdout.write(`${token()}\n`);
} catch (error) {
  if (!(error instanceof Refused || error instanceof SettingsError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
