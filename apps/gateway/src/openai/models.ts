// Contract 1, "OpenAI clients": lists a function as a model (`GET …/{function}/models`).
import { ServiceError } from '@inference-proxy/contracts';
import type { Admission } from '../calls/admission.ts';
import type { CallPath } from '../http/request-head.ts';

export class Models {
  readonly #admission: Admission;

  constructor(admission: Admission) {
    this.#admission = admission;
  }

  /**
   * Returns a list of one model: the function under its name.
   *
   * @throws ServiceError `not_found`, `app_failed_to_start`, `unavailable`
   */
  async list(path: CallPath): Promise<Buffer> {
    return Buffer.from(JSON.stringify({ object: 'list', data: [await this.#model(path)] }));
  }

  /**
   * Describes the model with this id, which is the function's name.
   *
   * @throws ServiceError `not_found`, `app_failed_to_start`, `unavailable`
   */
  async describe(path: CallPath, id: string): Promise<Buffer> {
    const model = await this.#model(path);
    if (id !== model.id)
      throw new ServiceError('not_found', `There is no model \`${id}\`; the one model here is \`${model.id}\`.`);
    return Buffer.from(JSON.stringify(model));
  }

  /** Returns the function as a model. `created` is 0 because the time of its creation is unknown. */
  async #model({ project, app, function: fn }: CallPath): Promise<{ readonly id: string }> {
    this.#admission.callable({ app, fn }, await this.#admission.find({ project, app }));
    const model = { id: fn, object: 'model', created: 0, owned_by: `${project}/${app}` };
    return model;
  }
}
