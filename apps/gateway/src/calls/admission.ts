// Contract 1 and 5: reads the body of a call and accepts the call as a run, or rejects the call and leaves nothing in the store.
import type { ServerResponse } from 'node:http';
import {
  type AppDescription,
  type FunctionSpec,
  isFunctionName,
  isProjectName,
  type RunId,
  ServiceError,
} from '@inference-proxy/contracts';
import type { SealedBox } from '@inference-proxy/crypto';
import type { Following, GatewayStore, NewRun, RunReader } from '@inference-proxy/store';
import { canonical, readForm } from '../forms/form-body.ts';
import { parametersOfForm } from '../forms/form-parameters.ts';
import { noSuchApp } from '../http/not-found.ts';
import type { OpenCall } from '../http/open-calls.ts';
import type { CallAccount, CallForm } from '../operations/call-account.ts';
import type { Validators } from '../schemas/validators.ts';
import type { Bodies } from './bodies.ts';
import type { CallProtocol, ReadCall } from './call-protocol.ts';
import { answeredByMedia, type CallRequest, type CheckedBody } from './call-request.ts';
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

/** The run that answers a call. */
export interface AnsweringRun {
  readonly runId: RunId;
  /** The run existed before this call. Another call with the same `Idempotency-Key` created the run. */
  readonly replayed: boolean;
  /** Follows the run from its first item. Absent if the caller does not wait. */
  readonly reader?: RunReader;
}

/** A call for an app that exists. */
interface AppCall {
  readonly call: CallRequest;
  readonly app: AppDescription;
  /** The run's input: the bytes of a JSON object for a function, a request for a custom runtime. */
  readonly params: Buffer;
  /** The body's bytes as received, or the canonical bytes of a form. Requests with the same `Idempotency-Key` must have the same bytes. */
  readonly body: Buffer;
  /** The run passes it to the function and to the webhook. */
  readonly traceparent: string | undefined;
}

/** An accepted call. */
export interface AcceptedCall {
  readonly run: AnsweringRun;
  /** The call with the options of its body. */
  readonly call: CallRequest;
  /** Whether items that are whole events are sent unchanged. */
  readonly preformatted: boolean;
}

export interface AdmissionParts {
  readonly store: GatewayStore;
  readonly bodies: Bodies;
  /** Checks the parameters of functions. */
  readonly validators: Validators;
  /** Seals the secrets of webhooks. */
  readonly box: SealedBox;
  readonly retention: Retention;
}

/** Replaces the description of an app that does not exist. */
const NO_APP = { functions: [] };

export class Admission {
  readonly #parts: AdmissionParts;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  /** Returns the description of an app, or undefined if the app is unknown. @throws ServiceError `unavailable` */
  async find({ project, app }: Pick<CallRequest, 'project' | 'app'>): Promise<AppDescription | undefined> {
    const apps = isProjectName(project) ? await this.#parts.store.registry.apps(project) : undefined;
    return apps?.get(app);
  }

  /**
   * Reads the body of a call, and accepts the call as a run.
   *
   * @param found the result of `find`
   * @param account learns the names and the form of the call
   * @throws ServiceError of the body, of the parameters, of the app or of the store
   */
  async accept(
    asked: CallRequest,
    found: AppDescription | undefined,
    protocol: CallProtocol,
    raw: ServerResponse,
    open: OpenCall,
    account: CallAccount,
  ): Promise<AcceptedCall> {
    const { bodies } = this.#parts;
    let app: AppDescription | undefined;
    let refused: unknown;
    try {
      app =
        asked.formType === undefined
          ? this.callable(asked, found)
          : await this.#described(asked, found, open, bodies.waitMs);
      account.known(asked.fn);
    } catch (thrown) {
      // The body of a rejected call is read only if a run may exist under the call's key.
      if (asked.idempotencyKey === undefined) throw thrown;
      refused = thrown;
    }
    // The body of a rejected form is not read.
    const fields = app && asked.formType !== undefined ? fieldsOf(app, asked.fn) : undefined;
    return bodies.hold(raw, app?.maxBodyBytes, async (bytes) => {
      const { body, read } =
        asked.formType === undefined
          ? this.#readJson(asked, protocol, app, bytes, raw)
          : await this.#readForm(asked, asked.formType, fields, bytes);
      const { call } = read;
      account.begun(formOf(call));
      if (app !== undefined) refused = await this.#violation(app, read);
      // A run may exist under the key of a rejected call, from a time when its app or its schema was another.
      const run =
        app !== undefined && refused === undefined
          ? await this.#run({ ...read, app, body: body.bytes, traceparent: account.traceparent })
          : await this.#kept(call, body.bytes);
      if (run === undefined) throw refused;
      return { run, call, preformatted: app?.preformatted ?? true };
    });
  }

  #readJson(
    asked: CallRequest,
    protocol: CallProtocol,
    app: AppDescription | undefined,
    bytes: Buffer,
    raw: ServerResponse,
  ): { readonly body: CheckedBody; readonly read: ReadCall } {
    const body = protocol.checkBody(bytes);
    return { body, read: protocol.readBody(asked, app ?? NO_APP, body, raw.req) };
  }

  /** @param spec of the called function, if it exists */
  async #readForm(
    asked: CallRequest,
    contentType: string,
    spec: FunctionSpec | undefined,
    bytes: Buffer,
  ): Promise<{ readonly body: CheckedBody; readonly read: ReadCall }> {
    const form = await readForm(contentType, bytes);
    // Only calls with a key are compared. The canonical form copies every file.
    const body = { bytes: asked.idempotencyKey === undefined ? bytes : canonical(form) };
    if (spec === undefined) return { body, read: { call: asked, params: body.bytes } };
    return {
      body,
      read: {
        call: answeredByMedia(asked, [spec]),
        ...parametersOfForm(spec, form, this.#parts.bodies.maxBytes),
      },
    };
  }

  /** Returns the error of parameters that violate the schema of their function. */
  #violation({ functions }: AppDescription, { call, params, value }: ReadCall): ReturnType<Validators['violation']> {
    const spec = value && functions.find(({ name }) => name === call.fn);
    return spec && this.#parts.validators.violation(spec, value, params.length);
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
    const known = isKnown(description.functions, fn);
    if (!isFunctionName(fn) || (!known && description.state === 'ready')) {
      throw new ServiceError('not_found', `There is no function \`${fn}\` in \`${app}\`.`);
    }
    return description;
  }

  /**
   * Returns the app of a call when its functions are known. A starting app does not know yet which parameters a form has.
   *
   * @param found the result of `find`
   * @param limitMs longest time of waiting; the queue time of the app bounds it too
   * @throws ServiceError of `callable`; `unavailable` if the app still starts then; the error of a gateway that stops
   */
  async #described(
    call: CallRequest,
    found: AppDescription | undefined,
    open: OpenCall,
    limitMs: number,
  ): Promise<AppDescription> {
    let app = this.callable(call, found);
    if (isKnown(app.functions, call.fn)) return app;
    const end = Promise.withResolvers<never>();
    const late = new ServiceError('unavailable', 'The app is still starting; send the form again.');
    // An interruption may come while no race waits for it.
    end.promise.catch(() => {});
    const timer = setTimeout(() => end.reject(late), Math.min(limitMs, app.queueTimeoutMs));
    open.onInterrupt((why) => end.reject(why === 'gone' ? late : why));
    try {
      while (!isKnown(app.functions, call.fn)) {
        const changed = this.#parts.store.registry.changed(call.project);
        app = this.callable(call, await this.find(call));
        if (!isKnown(app.functions, call.fn)) await Promise.race([changed, end.promise]);
      }
      return app;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Accepts the run, or joins the run that exists under the call's key.
   *
   * @throws ServiceError `overloaded`, `cancelled`, `idempotency_conflict`, `unavailable` (with the run's id, because the run may exist)
   */
  async #run(asked: AppCall): Promise<AnsweringRun> {
    const { call } = asked;
    const { runId } = call;
    const following = followingOf(call);
    const { accepted, reader } = this.#parts.store.acceptor.accept(this.#newRun(asked), following);
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
  async #kept(call: CallRequest, body: Buffer): Promise<AnsweringRun | undefined> {
    const { project, idempotencyKey } = call;
    if (idempotencyKey === undefined || !isProjectName(project)) return undefined;
    const { key, fingerprint } = idempotencyOf(call, idempotencyKey, body);
    const claim = await this.#parts.store.claim(project, key);
    if (claim === undefined) return undefined;
    if (claim.fingerprint !== fingerprint) throw conflict();
    return this.#joined(call, claim.runId);
  }

  #joined(call: CallRequest, runId: RunId): AnsweringRun {
    const following = followingOf(call);
    const reader =
      following === 'none'
        ? undefined
        : this.#parts.store.read(call.project, runId, following, resumedAfter(call) ?? 0);
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
      isRequest: app.kind === 'server',
      keepMs: promised ? this.#parts.retention.promisedMs : this.#parts.retention.otherMs,
      ...(absentMs !== undefined && { absentMs }),
      ...(call.webhook && { webhook: this.#sealed(call, call.webhook) }),
      ...(idempotencyKey !== undefined && { idempotency: idempotencyOf(call, idempotencyKey, body) }),
      ...(app.deployed && { deployed: true }),
      queueLimit: app.queueLimit,
      queueTimeoutMs: app.queueTimeoutMs,
      ...(traceparent !== undefined && { traceparent }),
    };
  }

  #sealed(
    { project, app, runId }: CallRequest,
    { url, secret }: NonNullable<CallRequest['webhook']>,
  ): NonNullable<NewRun['webhook']> {
    return { url, ...(secret && { secret: this.#parts.box.seal(secret, { project, app, runId, url }) }) };
  }
}

const isKnown = (functions: readonly FunctionSpec[], fn: string): boolean => functions.some(({ name }) => name === fn);

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

/** Returns the form of a call for its account. */
export const formOf = ({ waitMs, stream }: CallRequest): CallForm =>
  waitMs === 0 ? 'async' : stream ? 'stream' : 'sync';

/** Returns the function whose schema converts the fields of a form. @throws ServiceError `unsupported_media_type` */
function fieldsOf({ functions }: AppDescription, fn: string): FunctionSpec {
  const spec = functions.find(({ name }) => name === fn);
  if (spec?.schema !== undefined) return spec;
  throw new ServiceError(
    'unsupported_media_type',
    `\`${fn}\` has no types, so the body must be \`Content-Type: application/json\`.`,
  );
}
