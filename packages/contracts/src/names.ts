// Contract 1: the valid names of projects, apps and functions.

const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const FUNCTION = /^[A-Za-z][A-Za-z0-9_]{0,126}$/;
const RESERVED_APPS = new Set(['runs', 'deliveries', 'apps', 'limits', 'stats', 'audit', 'tokens']);

/** Letters, digits, `.`, `_` and `-`, at most 63: safe in a path, a Redis key and a file name. */
export const isProjectName = (name: string): boolean => SEGMENT.test(name);

/** Completes "The project name … must have …" in messages. */
export const PROJECT_NAME_FORM =
  'at most 63 letters, digits, ".", "_" and "-", and must begin with a letter or a digit';

/** As a project's name, without the names of the service's own paths below a project. */
export const isAppName = (name: string): boolean => SEGMENT.test(name) && !RESERVED_APPS.has(name);

/** A public function. A name that starts with `_` is private. */
export const isFunctionName = (name: string): boolean => FUNCTION.test(name);

const SECRET = /^[A-Z_][A-Z0-9_]{0,127}$/;
/** Variables that the service, the loader or an interpreter reads. Another value could run other code than the app's. */
const RESERVED_VARIABLES = new Set(['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'PORT', 'PROJECT_ID', 'APP_NAME', '_']);
const RESERVED_PREFIXES = ['LD_', 'PYTHON', 'NODE_', 'BUN_', 'DENO_', 'BASH_', 'INFERENCE_', 'KEPT_', 'CUDA_'];

/** The name of an app's secret, which is a variable of its processes (contract 7, "Secrets"). */
export const isSecretName = (name: string): boolean =>
  SECRET.test(name) && !RESERVED_VARIABLES.has(name) && !RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix));

/** Completes "The name of the secret must have …" in messages. */
export const SECRET_NAME_FORM = `capital letters, digits and "_", at most 128, and must not be ${[...RESERVED_VARIABLES].join(', ')} or begin with a digit, ${RESERVED_PREFIXES.join(', ')}`;

const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A UUID in lower case, as this service writes its run ids. */
export const isRunId = (text: string): boolean => RUN_ID.test(text);
