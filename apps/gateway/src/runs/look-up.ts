// Contract 5: `GET /runs/{run_id}`. The result is spliced in as the text that it is, never parsed.
import { isProjectName, isRunId, type Outcome, resultAsJson, ServiceError } from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import { runView } from './run-view.ts';

export class LookUp {
  constructor(private readonly store: GatewayStore) {}

  /**
   * The answer of `GET /v4/{project}/runs/{run_id}`: a JSON object.
   *
   * @throws ServiceError `not_found`, `unavailable`
   */
  async run(project: string, runId: string): Promise<Buffer> {
    const known = isProjectName(project) && isRunId(runId);
    const record = known ? await this.store.look(project, runId) : undefined;
    if (record === undefined) throw new ServiceError('not_found', 'There is no such run, or it is kept no longer.');
    // Of a long plain stream only the newest items are kept: it has a count, but no result.
    const { outcome } = record.gone > 0 ? {} : record;
    const result = outcome && (await this.#result(project, runId, outcome));
    const head = JSON.stringify(runView(record));
    if (result === undefined) return Buffer.from(head);
    return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"result":`), result, Buffer.from('}')]);
  }

  async #result(project: string, runId: string, outcome: Outcome): Promise<Buffer | undefined> {
    if (outcome.error) return undefined;
    const batches = outcome.streamed && outcome.items > 0 ? await this.store.items(project, runId) : [];
    // They may have gone since.
    const kept = batches.reduce((count, batch) => count + batch.count, 0);
    return !outcome.streamed || kept === outcome.items ? resultAsJson(outcome, batches) : undefined;
  }
}
