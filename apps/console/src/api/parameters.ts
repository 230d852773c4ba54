// Contract 5: the parameters of a run's call.
import { errorOf, send } from './request.ts';

export interface Parameters {
  /** The parameters as the service received them. */
  readonly text: string;
  /** `json`: an object of parameters. `request`: a request to a web server. `files`: parameters with files. */
  readonly form: string;
}

/** Returns the parameters of a run. @throws ApiError 404 with the reason if the store does not have them; Unreachable */
export async function readParameters(project: string, run: string, signal?: AbortSignal): Promise<Parameters> {
  const url = `/v4/${encodeURIComponent(project)}/runs/${encodeURIComponent(run)}/parameters`;
  const answer = await send(url, signal ? { signal } : {});
  if (!answer.ok) throw await errorOf(answer);
  return { text: await answer.text(), form: answer.headers.get('x-parameters') ?? 'json' };
}
