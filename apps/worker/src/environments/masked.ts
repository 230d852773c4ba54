// Contract 7, "Dependencies": removes credentials of package indexes from the output of a build.

const USER_INFO = /(\/\/)[^/\s'"]*@/g;
const MASK = '***';
/** A shorter secret would mask parts of ordinary words. */
const SHORTEST = 6;
/** Names of npm's settings that are secrets, such as `npm_config_//host/:_authToken`. */
const SECRET_NAME = /(_authtoken|_auth|_password|password|token)$/i;

/** Returns a function that masks the credentials in URLs, and every secret of the build's variables. */
export function maskOf(variables: Readonly<Record<string, string>>): (text: string) => string {
  const secrets = new Set<string>();
  for (const [name, value] of Object.entries(variables)) {
    if (SECRET_NAME.test(name)) secrets.add(value);
    for (const word of value.split(/[\s,]+/)) for (const secret of secretsIn(word)) secrets.add(secret);
  }
  const known = [...secrets].filter((secret) => secret.length >= SHORTEST).sort((a, b) => b.length - a.length);
  return (text) => known.reduce((line, secret) => line.replaceAll(secret, MASK), text.replace(USER_INFO, `$1${MASK}@`));
}

/** Returns the password of a URL, or its user if there is no password: an index may take a token as the user. */
function secretsIn(word: string): string[] {
  if (!word.includes('@') || !URL.canParse(word)) return [];
  const { username, password } = new URL(word);
  const secret = password || username;
  return [secret, decoded(secret)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
