// Contract 7, "Secrets": the names of an app's secrets. Values are never readable.
import type { ListSecretsData, ListSecretsResponses } from '../../generated/api/types.gen.ts';
import { get } from './request.ts';

export type Secret = ListSecretsResponses[200]['secrets'][number];

/** Returns the names and dates of the secrets of an app. The token needs the scope `apps:write`. */
export async function listSecrets(project: string, app: string, signal?: AbortSignal): Promise<readonly Secret[]> {
  const path = { project, app };
  const url = '/v4/{project}/apps/{app}/secrets';
  return (await get<ListSecretsData, ListSecretsResponses[200]>(url, { path, signal })).secrets;
}
