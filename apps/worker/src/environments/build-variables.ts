// Contract 7, "Dependencies": the environment of a build. The settings of pip, uv and npm reach the build, and never an app's process.
import { DEFAULT_PATH } from '../runtimes/clean-env.ts';

type Variables = Readonly<Record<string, string | undefined>>;

const PASSED = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'XDG_CONFIG_HOME', 'GIT_SSL_CAINFO'] as const;
const CERTIFICATES = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS'];
const PROXIES = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'];
const TOOLS = /^(PIP_|UV_|npm_config_)/i;

/**
 * The settings of uv for settings of pip, which uv does not read. A setting of uv itself wins.
 * Source: docs.astral.sh/uv/reference/environment
 */
const OF_PIP: Readonly<Record<string, string>> = {
  PIP_INDEX_URL: 'UV_DEFAULT_INDEX',
  PIP_EXTRA_INDEX_URL: 'UV_INDEX',
  PIP_FIND_LINKS: 'UV_FIND_LINKS',
  PIP_NO_INDEX: 'UV_NO_INDEX',
  PIP_CONSTRAINT: 'UV_CONSTRAINT',
  PIP_TRUSTED_HOST: 'UV_INSECURE_HOST',
  PIP_CERT: 'SSL_CERT_FILE',
};
const OLD_NAMES: Readonly<Record<string, string>> = {
  UV_DEFAULT_INDEX: 'UV_INDEX_URL',
  UV_INDEX: 'UV_EXTRA_INDEX_URL',
};

/** Settings without which the tools would ask, show a bar or look for their own updates. */
const QUIET = {
  CI: '1',
  NO_COLOR: '1',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
  PIP_NO_INPUT: '1',
  PIP_PROGRESS_BAR: 'off',
  UV_NO_PROGRESS: '1',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_progress: 'false',
  npm_config_update_notifier: 'false',
};

/**
 * Returns the variables of a build.
 *
 * @param own the worker's environment
 * @param temporary a folder that is removed after the build. Without a setting of the operator, the tools keep their caches there, so that
 * the caches need no bound.
 */
export function buildVariables(own: Variables, temporary: string): Record<string, string> {
  const env: Record<string, string> = {
    PATH: DEFAULT_PATH,
    ...QUIET,
    PIP_CACHE_DIR: `${temporary}/pip`,
    UV_CACHE_DIR: `${temporary}/uv`,
    UV_PYTHON_DOWNLOADS: 'never',
    npm_config_cache: `${temporary}/npm`,
  };
  for (const [name, value] of Object.entries(own)) if (value !== undefined && isPassed(name)) env[name] = value;
  return { ...env, ...uvSettings(own, own), TMPDIR: temporary };
}

/** Returns the settings of uv for settings of pip. @param own variables with settings of uv, which win */
export function uvSettings(pip: Variables, own: Variables): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const [name, uv] of Object.entries(OF_PIP)) {
    const value = pip[name];
    if (value !== undefined && own[uv] === undefined && own[OLD_NAMES[uv] ?? uv] === undefined) settings[uv] = value;
  }
  return settings;
}

const isPassed = (name: string): boolean =>
  TOOLS.test(name) ||
  CERTIFICATES.includes(name) ||
  PROXIES.includes(name.toLowerCase()) ||
  PASSED.some((one) => one === name);
