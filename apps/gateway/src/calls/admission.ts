// Contract 1 and 5: accepts a call as a run, or rejects the call and leaves nothing in the store.
import {
  type AppDescription,
  isFunctionName,
  isProjectName,
  type RunId,
  ServiceError,
} from '@inference-proxy/contracts';
import type { SealedBox } from '@inference-proxy/crypto';
import type { Following, GatewayStore, NewRun, RunReader } from '@inference-proxy/store';
import type { CallRequest } from './call-request.ts';
import { idempotencyOf } from './idempotency.ts';

/** Retention of ended runs, ms. */
export interface Retention {
  readonly promisedMs: number;
  readonly otherMs: number;
}

const conflict = (): ServiceError =>
  new ServiceError('idempotency_conflict', 'This Idempotency-Key was used with another request.');

const FULL = {
  queue: 'The queue of this app is full; call again.',
  store: 'The run store is full; call again later.',
} as const;

export const noSuchApp = (app: string): ServiceError =>
  new ServiceError('not_found', `There is no app \`${app}\` in this project.`);

/** The run that answers a call. */
export interface AnsweringRun {
  readonly runId: RunId;
  /** The run existed before this call. Another call with the same `Idempotency-Key` created the run. */
  readonly replayed: boolean;
  /** Follows the run from its first item. Absent if the caller does not wait. */
  readonly reader?: RunReader;
}

/** A call for an app that exists. */
export interface AppCall {
  readonly call: CallRequest;
  readonly app: AppDescription;
  /** The run's input: the bytes of a JSON object for a function, a request for a custom runtime. */
  readonly params: Buffer;
  /** The body's bytes as received, or the canonical bytes of a form. Requests with the same `Idempotency-Key` must have the same bytes. */
  readonly body: Buffer;
  /** The run passes it to the function and to the webhook. */
  readonly traceparent: string | undefined;
}

export class Admission {
  readonly #store: GatewayStore;
  readonly #box: SealedBox;
  readonly #retention: Retention;

  constructor(store: GatewayStore, box: SealedBox, retention: Retention) {
    this.#store = store;
    this.#box = box;
    this.#retention = retention;
  }

  /** Returns the description of an app, or undefined if the app is unknown. @throws ServiceError `unavailable` */
  async find({ project, app }: Pick<CallRequest, 'project' | 'app'>): Promise<AppDescription | undefined> {
    const apps = isProjectName(project) ? await this.#store.apps(project) : undefined;
    return apps?.get(app);
  }

  /**
   * Returns the app of a call if the call's function can be called.
   *
   * @param description the result of `find`
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
    // An app that is starting has not announced its functions yet. Its calls wait in the queue.
    const known = description.functions.some(({ name }) => name === fn);
    if (!isFunctionName(fn) || (!known && description.state === 'ready')) {
      throw new ServiceError('not_found', `There is no function \`${fn}\` in \`${app}\`.`);
    }
    return description;
  }

  /**
   * Accepts the run, or joins the run that exists under the call's key.
   *
   * @throws ServiceError `overloaded`, `cancelled`, `idempotency_conflict`, `unavailable` (with the run's id, because the run may exist)
   */
  async run(asked: AppCall): Promise<AnsweringRun> {
    const { call } = asked;
    const { runId } = call;
    const following = followingOf(call);
    const { accepted, reader } = this.#store.accept(this.#newRun(asked), following);
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
   * Finds the run under the key of a call whose app or function does not exist. The store keeps a run after its function is removed.
   *
   * @param body the bytes as received, or the canonical bytes of a form
   * @throws ServiceError `idempotency_conflict`, `unavailable`
   */
  async kept(call: CallRequest, body: Buffer): Promise<AnsweringRun | undefined> {
    const { project, idempotencyKey } = call;
    if (idempotencyKey === undefined || !isProjectName(project)) return undefined;
    const { key, fingerprint } = idempotencyOf(call, idempotencyKey, body);
    const claim = await this.#store.claim(project, key);
    if (claim === undefined) return undefined;
    if (claim.fingerprint !== fingerprint) throw conflict();
    return this.#joined(call, claim.runId);
  }

  #joined(call: CallRequest, runId: RunId): AnsweringRun {
    const following = followingOf(call);
    const reader =
      following === 'none' ? undefined : this.#store.read(call.project, runId, following, resumedAfter(call) ?? 0);
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
      preformatted: app.preformatted,
      keepMs: promised ? this.#retention.promisedMs : this.#retention.otherMs,
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
    return { url, ...(secret && { secret: this.#box.seal(secret, { project, app, runId, url }) }) };
  }
}

/**
 * Returns the number of the event after which a call resumes the joined stream.
 * Returns undefined if the call reads the whole answer.
 */
export const resumedAfter = ({ stream, after }: Pick<CallRequest, 'stream' | 'after'>): number | undefined =>
  stream ? after : undefined;

/** Returns the part of the run that the call follows. */
function followingOf({ waitMs, stream, forwarded, form }: CallRequest): Following | 'none' {
  if (waitMs === 0) return 'none';
  if (forwarded) return 'answer';
  return stream ? (form === 'rich' ? 'rich' : 'items') : 'outcome';
}
