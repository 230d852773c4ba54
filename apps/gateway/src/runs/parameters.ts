// Contract 5, "Parameters of a run": `GET /runs/{run_id}/parameters`.
import { ServiceError } from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import { ofRun } from '../http/not-found.ts';

/** Marks parameters with files (harness/PROTOCOL.md). A line of JSON and the contents of the files follow. */
const FILES_MARK = 0;
const NEWLINE = 0x0a;

const WHY_NOT = {
  'not kept': 'The run has ended, and its parameters are not kept. Parameters over 64 KiB go at the end of a run.',
  'too long': 'The parameters of the run are over 64 KiB.',
  request: 'The run is a request to a web server, which has no parameters.',
} as const;

/** `files`: an object with `parameters` and `files`, without the contents of the files. */
export interface ShownParameters {
  readonly form: 'json' | 'files';
  /** A JSON object. */
  readonly body: Buffer;
}

/** Returns the parameters of a run, as the service received them. @throws ServiceError `not_found`, `unavailable` */
export async function parametersOfRun(
  store: Pick<GatewayStore, 'parameters'>,
  project: string,
  runId: string,
): Promise<ShownParameters> {
  const found = await ofRun(project, runId, () => store.parameters(project, runId));
  if (found.state === 'absent') throw new ServiceError('not_found', WHY_NOT[found.reason], { runId });
  const { bytes } = found;
  if (bytes[0] !== FILES_MARK) return { form: 'json', body: bytes };
  return { form: 'files', body: bytes.subarray(1, bytes.indexOf(NEWLINE)) };
}
