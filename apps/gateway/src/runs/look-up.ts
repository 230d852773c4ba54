// Contract 5, "Look-up: `GET /runs/{run_id}`". The result is inserted as text and never parsed.
import type { GatewayStore } from '@inference-proxy/store';
import { ofRun } from '../http/not-found.ts';
import type { AnswerBody } from '../http/stored-answer.ts';
import { resultBody } from '../http/stored-result.ts';
import { runView } from './run-view.ts';

export class LookUp {
  readonly #store: GatewayStore;

  constructor(store: GatewayStore) {
    this.#store = store;
  }

  /**
   * Returns the answer of `GET /v4/{project}/runs/{run_id}`: a JSON object.
   *
   * @throws ServiceError `not_found`, `unavailable`
   */
  async run(project: string, runId: string): Promise<AnswerBody> {
    const record = await ofRun(project, runId, () => this.#store.lookUp(project, runId));
    // The store keeps only the newest items of a long plain stream. Such a run has a count of items, but no result.
    const { outcome } = record.gone > 0 ? {} : record;
    const head = JSON.stringify(runView(record));
    if (outcome === undefined || outcome.error) return Buffer.from(head);
    const around = [`${head.slice(0, -1)},"result":`, '}'] as const;
    return (await resultBody(this.#store, project, runId, outcome, around)) ?? Buffer.from(head);
  }
}
