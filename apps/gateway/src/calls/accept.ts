// Contract 1 and 5: a call becomes a run, or is refused with nothing left behind.
import {
  type AppDescription,
  isFunctionName,
  isProjectName,
  type RunId,
  ServiceError,
} from '@inference-proxy/contracts';
import type { SealedBox } from '@inference-proxy/crypto';
import type { GatewayStore, Live, NewRun, RunReader } from '@inference-proxy/store';
import type { CallRequest } from './call-request.ts';
import { idempotencyOf } from './idempotency.ts';

/** How long runs are kept after their end, ms. */
export interface Retention {
  readonly promisedMs: number;
  readonly otherMs: number;
}

const conflict = (): ServiceError =>
  new ServiceError('idempotency_conflict', 'This Idempotency-Key was used with another request.');

const FULL = {
  queue: 'The queue of this app is full; call again.',
  store: 'The run store is full of what must be kept; call again later.',
} as const;

export const noSuchApp = (app: string): ServiceError =>
  new ServiceError('not_found', `There is no app \`${app}\` in this project.`);

/** The run that answers a call. */
export interface AnsweringRun {
  readonly runId: RunId;
  /** It was there before: another call under the same `Idempotency-Key` made it. */
  readonly replayed: boolean;
  /** Follows it from its first item; none where the caller does not wait. */
  readonly reader?: RunReader;
}

/** A call for an app that exists. */
export interface AppCall {
  readonly call: CallRequest;
  readonly app: AppDescription;
  /** What the function is called with. */
  readonly params: Buffer;
  /** As it came: what tells one request from another. */
  readonly body: Buffer;
  /** Goes with the run to its function and its webhook. */
  readonly traceparent: string | undefined;
}

export class Acceptance {
  constructor(
    private readonly store: GatewayStore,
    private readonly box: SealedBox,
    private readonly retention: Retention,
  ) {}

  /** What is known of an app. @throws ServiceError `unavailable` */
  async find({ project, app }: Pick<CallRequest, 'project' | 'app'>): Promise<AppDescription | undefined> {
    const apps = isProjectName(project) ? await this.store.apps(project) : undefined;
    return apps?.get(app);
  }

  /**
   * The app that a call is for, when it can be called so.
   *
   * @param description what `find` knows of it
   * @throws ServiceError `not_found`, `app_failed_to_start`
   */
  callable({ app, fn }: Pick<CallRequest, 'app' | 'fn'>, description: AppDescription | undefined): AppDescription {
    if (description === undefined) throw noSuchApp(app);
    if (description.state === 'broken') {
      const { error } = description;
      throw new ServiceError('app_failed_to_start', error?.message ?? 'The app could not be started.', {
        ...(error?.type !== undefined && { type: error.type }),
      });
    }
    if (description.kind === 'server') return description;
    // An app that is still starting has not told its functions yet: its calls queue.
    const known = description.functions.some(({ name }) => name === fn);
    if (!isFunctionName(fn) || (!known && description.state === 'ready')) {
      throw new ServiceError('not_found', `There is no function \`${fn}\` in \`${app}\`.`);
    }
    return description;
  }

  /**
   * Accepts the run, or joins the one that is there under the call's key.
   *
   * @throws ServiceError `overloaded`, `cancelled`, `idempotency_conflict`, `unavailable` (with the run's id: it may exist)
   */
  async run(asked: AppCall): Promise<AnsweringRun> {
    const { call } = asked;
    const { runId } = call;
    const live = liveOf(call);
    const { accepted, reader } = this.store.accept(this.#newRun(asked), live);
    const answer = await accepted;
    switch (answer.state) {
      case 'accepted':
        return { runId, replayed: false, ...(reader && { reader }) };
      case 'joined':
        return this.#joined(call, answer.runId);
      case 'conflict':
        throw conflict();
      case 'overloaded':
        throw new ServiceError('overloaded', FULL[answer.reason], {
          retryAfterS: Math.ceil(answer.retryAfterMs / 1000),
        });
      case 'cancelled':
        throw new ServiceError('cancelled', 'The run was cancelled before it began.', { runId });
    }
  }

  /**
   * The run that is there under the key of a call whose app or function is not, or not any more: what it made is kept all the same.
   *
   * @param body as it came
   * @throws ServiceError `idempotency_conflict`, `unavailable`
   */
  async kept(call: CallRequest, body: Buffer): Promise<AnsweringRun | undefined> {
    const { project, idempotencyKey } = call;
    if (idempotencyKey === undefined || !isProjectName(project)) return undefined;
    const { key, fingerprint } = idempotencyOf(call, idempotencyKey, body);
    const holder = await this.store.holder(project, key);
    if (holder === undefined) return undefined;
    if (holder.fingerprint !== fingerprint) throw conflict();
    return this.#joined(call, holder.runId);
  }

  #joined(call: CallRequest, runId: RunId): AnsweringRun {
    const live = liveOf(call);
    const reader = live === 'none' ? undefined : this.store.read(call.project, runId, live, resumedAfter(call) ?? 0);
    return { runId, replayed: true, ...(reader && { reader }) };
  }

  #newRun({ call, app, params, body, traceparent }: AppCall): NewRun {
    const { promised, absentMs, idempotencyKey } = call;
    return {
      project: call.project,
      runId: call.runId,
      app: call.app,
      fn: call.fn,
      params,
      promised,
      paced: (call.stream || call.forwarded) && !promised,
      keepMs: promised ? this.retention.promisedMs : this.retention.otherMs,
      ...(absentMs !== undefined && { absentMs }),
      ...(call.webhook && { webhook: this.#sealed(call, call.webhook) }),
      ...(idempotencyKey !== undefined && { idempotency: idempotencyOf(call, idempotencyKey, body) }),
      queueLimit: app.queueLimit,
      queueTimeoutMs: app.queueTimeoutMs,
      ...(traceparent !== undefined && { traceparent }),
    };
  }

  #sealed(
    { project, app, runId }: CallRequest,
    { url, secret }: NonNullable<CallRequest['webhook']>,
  ): NonNullable<NewRun['webhook']> {
    return { url, ...(secret && { secret: this.box.seal(secret, { project, app, runId, url }) }) };
  }
}

/** The number of the event after which a call resumes the stream that it joins; `undefined` where it reads the whole answer. */
export const resumedAfter = ({ stream, after }: Pick<CallRequest, 'stream' | 'after'>): number | undefined =>
  stream ? after : undefined;

/** What a call follows of its run. */
function liveOf({ waitMs, stream, forwarded, form }: CallRequest): Live {
  if (waitMs === 0) return 'none';
  if (forwarded) return 'answer';
  return stream ? (form === 'full' ? 'full' : 'items') : 'outcome';
}
