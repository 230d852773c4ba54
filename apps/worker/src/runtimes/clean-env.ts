// An app's environment: an allow-list, so that none of the worker's own settings (its store, its keys) reaches an app.

const PASSED = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ'] as const;

/** Used where the worker itself has no PATH. */
export const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';

/** @param own the worker's environment @param app what the app's manifest sets, which wins */
export function cleanEnv(
  own: Readonly<Record<string, string | undefined>>,
  ids: { readonly project: string; readonly app: string },
  app: Readonly<Record<string, string>>,
): Record<string, string> {
  const env: Record<string, string> = { PATH: DEFAULT_PATH };
  for (const name of PASSED) {
    const value = own[name];
    if (value !== undefined) env[name] = value;
  }
  return { ...env, PYTHONUNBUFFERED: '1', PROJECT_ID: ids.project, APP_NAME: ids.app, ...app };
}
