// Contract 5: `GET /runs/{run_id}`. The result is spliced in as the text that it is, never parsed.
import { isProjectName, isRunId, ServiceError } from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import type { AnswerBody } from '../http/stored-answer.ts';
import { runView } from './run-view.ts';
import { resultBody } from './stored-result.ts';

export class LookUp {
  constructor(private readonly store: GatewayStore) {}

  /**
   * The answer of `GET /v4/{project}/runs/{run_id}`: a JSON object.
   *
   * @throws ServiceError `not_found`, `unavailable`
   */
  async run(project: string, runId: string): Promise<AnswerBody> {
    const known = isProjectName(project) && isRunId(runId);
    const record = known ? await this.store.look(project, runId) : undefined;
    if (record === undefined) throw new ServiceError('not_found', 'There is no such run, or it is kept no longer.');
    // Of a long plain stream only the newest items are kept: it has a count, but no result.
    const { outcome } = record.gone > 0 ? {} : record;
    const head = JSON.stringify(runView(record));
    if (outcome === undefined || outcome.error) return Buffer.from(head);
    const around = [`${head.slice(0, -1)},"result":`, '}'] as const;
    return (await resultBody(this.store, project, runId, outcome, around)) ?? Buffer.from(head);
  }
}
