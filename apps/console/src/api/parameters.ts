// Contract 5: the parameters of a run's call.
import { errorOf, send } from './request.ts';

export interface Parameters {
  /** The parameters as the service received them. */
  readonly text: string;
  /** `json`: an object of parameters. `request`: a request to a web server. `files`: parameters with files. */
  readonly form: string;
}

/** Returns the parameters of a run, or undefined if the store no longer has them. @throws ApiError, Unreachable */
export async function readParameters(
  project: string,
  run: string,
  signal?: AbortSignal,
): Promise<Parameters | undefined> {
  const url = `/v4/${encodeURIComponent(project)}/runs/${encodeURIComponent(run)}/parameters`;
  const answer = await send(url, signal ? { signal } : {});
  if (answer.status === 404 || answer.status === 410) return undefined;
  if (!answer.ok) throw await errorOf(answer);
  return { text: await answer.text(), form: answer.headers.get('x-parameters') ?? 'json' };
}
