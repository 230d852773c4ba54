// Contract 1 (`GET …/{function}/models`): the one model that a function is.
import type { Acceptance } from '../calls/accept.ts';
import type { CallPath } from '../calls/call-request.ts';

export class Models {
  constructor(private readonly acceptance: Acceptance) {}

  /**
   * A list of one: the function under its name. When it was made is not known.
   *
   * @throws ServiceError `not_found`, `app_failed_to_start`, `unavailable`
   */
  async list({ project, app, function: fn }: CallPath): Promise<Buffer> {
    this.acceptance.callable({ app, fn }, await this.acceptance.find({ project, app }));
    return Buffer.from(
      JSON.stringify({
        object: 'list',
        data: [{ id: fn, object: 'model', created: 0, owned_by: `${project}/${app}` }],
      }),
    );
  }
}
