// Contract 5, "Deliveries": the log of a project's deliveries, and their redelivery.
import { ServiceError } from '@inference-proxy/contracts';
import type { DeliveryLog } from '@inference-proxy/store';
import { checkProject, noSuchRun, ofRun } from '../http/not-found.ts';
import type { Query } from '../http/request-head.ts';
import { deliveryQueryOf } from './delivery-query.ts';
import { attemptView, deliveryView } from './delivery-view.ts';

export class Deliveries {
  readonly #log: DeliveryLog;

  constructor(log: DeliveryLog) {
    this.#log = log;
  }

  /**
   * Returns a run's deliveries with every attempt: the answer of `GET /runs/{run_id}/deliveries`.
   *
   * @throws ServiceError `not_found`, `unavailable`
   */
  async ofRun(project: string, runId: string): Promise<object> {
    const deliveries = await ofRun(project, runId, () => this.#log.ofRun(project, runId));
    return {
      deliveries: deliveries.map((delivery) => ({ ...deliveryView(delivery), log: delivery.log.map(attemptView) })),
    };
  }

  /**
   * Returns the project's deliveries, newest first. A `cursor` means that more deliveries exist, even if a filtered page is short.
   *
   * @throws ServiceError `not_found`, `invalid_request`, `unavailable`
   */
  async list(project: string, query: Query): Promise<object> {
    const { filter, limit, cursor } = deliveryQueryOf(query, 'ignored');
    checkProject(project);
    const page = await this.#log.list(project, filter, limit, cursor);
    return {
      deliveries: page.deliveries.map((delivery) => {
        const last = delivery.log.at(-1);
        return { ...deliveryView(delivery), ...(last && { last_attempt: attemptView(last) }) };
      }),
      ...(page.cursor !== undefined && { cursor: page.cursor }),
    };
  }

  /**
   * Counts the matching deliveries: the answer of `GET /deliveries/count`. A `cursor` means that further deliveries may match.
   *
   * @throws ServiceError `not_found`, `invalid_request`, `unavailable`
   */
  async count(project: string, query: Query): Promise<object> {
    // A misspelt filter would count more deliveries than a redelivery with the right filter sends.
    const { filter, cursor } = deliveryQueryOf(query, 'refused');
    checkProject(project);
    return this.#log.count(project, filter, cursor);
  }

  /**
   * Asks for one attempt of a delivery in any state.
   *
   * @throws ServiceError `not_found`, `conflict` (an attempt is under way, or the run has not ended), `unavailable`
   */
  async redeliver(project: string, runId: string, deliveryId: string): Promise<object> {
    const deliveries = await ofRun(project, runId, () => this.#log.ofRun(project, runId));
    const delivery = deliveries.find((one) => one.deliveryId === deliveryId);
    if (!delivery) throw new ServiceError('not_found', 'The run has no such delivery.');
    if (delivery.state === 'waiting')
      throw new ServiceError('conflict', 'The run has not ended yet, so it has no delivery to repeat.', { runId });
    const [asked] = await this.#log.redeliver(project, [runId]);
    if (asked === 'unknown') throw noSuchRun();
    if (asked === 'under-way')
      throw new ServiceError('conflict', 'An attempt of this delivery is under way; ask again after its end.', {
        runId,
      });
    return { run_id: runId, delivery_id: deliveryId, status: 'pending' };
  }

  /**
   * Asks for one attempt of each matching delivery, at most `limit` in a call.
   * Without `status`, only failed deliveries match.
   *
   * @throws ServiceError `not_found`, `invalid_request`, `unavailable`
   */
  async redeliverAll(project: string, query: Query): Promise<object> {
    // A misspelt filter must not widen the set of deliveries that are sent again.
    const { filter, limit, cursor } = deliveryQueryOf(query, 'refused');
    checkProject(project);
    const page = await this.#log.list(project, { state: 'failed', ...filter }, limit, cursor);
    const answers = await this.#log.redeliver(
      project,
      page.deliveries.map(({ runId }) => runId),
    );
    const count = (wanted: string): number => answers.filter((answer) => answer === wanted).length;
    return {
      redelivered: count('asked'),
      under_way: count('under-way'),
      ...(page.cursor !== undefined && { cursor: page.cursor }),
    };
  }
}
