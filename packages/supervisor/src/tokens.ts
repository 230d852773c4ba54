// Contract 6: signs a bearer token for development, HS256 (RFC 7519, RFC 7515), with the development secret.
import { createHmac, randomUUID } from 'node:crypto';

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export interface TokenClaims {
  /** The project that the token opens; `*` for all projects. */
  readonly project: string;
  readonly ttlS: number;
  readonly subject?: string;
  /** Further claims, such as `iss`. */
  readonly more?: object;
}

export function signToken(secret: string, { project, ttlS, subject = 'developer', more }: TokenClaims): string {
  const iat = Math.floor(Date.now() / 1000);
  const claims = { sub: subject, project_id: project, jti: randomUUID(), iat, exp: iat + ttlS, ...more };
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}
