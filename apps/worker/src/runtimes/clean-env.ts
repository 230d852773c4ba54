// Contract 7: an app's environment. An allow-list keeps the worker's own settings (its store, its keys) from the app.

const PASSED = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ'] as const;

/** The PATH of apps if the worker has none. */
export const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';

/** @param own the worker's environment @param app the manifest's variables, which take precedence */
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
