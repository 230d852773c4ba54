// Contract 1 to 3: answers one call, from its request to the end of its answer.
import type { ServerResponse } from 'node:http';
import { type AppDescription, type FunctionSpec, type Outcome, ServiceError } from '@inference-proxy/contracts';
import type { WebhookUrls } from '@inference-proxy/egress';
import type { GatewayStore, RunProgress, RunReader } from '@inference-proxy/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { canonical, readForm } from '../forms/form-body.ts';
import { parametersOfForm } from '../forms/form-parameters.ts';
import { asServiceError, send, sendNothing } from '../http/answer.ts';
import type { AnswersInFlight } from '../http/answers-in-flight.ts';
import type { OpenCall, OpenCalls } from '../http/open-calls.ts';
import { shouldRetry } from '../http/openai-errors.ts';
import type { CallPath } from '../http/request-head.ts';
import { sendBody } from '../http/stored-answer.ts';
import { type AccountParts, CallAccount, type CallEnd, type CallForm } from '../operations/call-account.ts';
import type { Validators } from '../schemas/validators.ts';
import { EventStream } from '../streaming/event-stream.ts';
import { nothingFollows } from '../streaming/events.ts';
import type { KeepAlive, StreamEnd } from '../streaming/live-response.ts';
import { type Admission, type AnsweringRun, resumedAfter } from './admission.ts';
import type { Bodies } from './bodies.ts';
import type { CallProtocol, LiveAnswer, ReadCall } from './call-protocol.ts';
import { answeredByMedia, type CallRequest, type CheckedBody } from './call-request.ts';

export interface CallsParts {
  readonly store: GatewayStore;
  readonly admission: Admission;
  readonly bodies: Bodies;
  /** Checks the parameters of functions. */
  readonly validators: Validators;
  readonly answers: AnswersInFlight;
  readonly openCalls: OpenCalls;
  readonly keepAlives: KeepAlive;
  readonly webhooks: WebhookUrls;
  /** The protocol of calls to custom runtimes. */
  readonly passthrough: CallProtocol;
  readonly accounts: AccountParts;
  /** `STREAM_COMMIT_MS`. */
  readonly commitMs: number;
}

/** Replaces the description of an app that does not exist. */
const NO_APP = { functions: [] };

/** The account of a call whose caller has disconnected. */
const GONE: CallEnd = { status: 'gone' };

export class Calls {
  readonly #parts: CallsParts;

  constructor(parts: CallsParts) {
    this.#parts = parts;
  }

  /** Returns the kind of an app, or undefined if the app is unknown. @throws ServiceError `unavailable` */
  async kindOf(path: Pick<CallPath, 'project' | 'app'>): Promise<AppDescription['kind'] | undefined> {
    return (await this.#parts.admission.find(path))?.kind;
  }

  /** Answers a call. @throws errors for the error filter, only before a byte of the answer is written */
  async answer(
    request: FastifyRequest<{ Params: CallPath }>,
    reply: FastifyReply,
    protocol: CallProtocol,
  ): Promise<void> {
    reply.hijack();
    const { raw } = reply;
    const { params: path, id: runId } = request;
    const account = new CallAccount(this.#parts.accounts, request);
    let open: OpenCall | undefined;
    try {
      open = this.#parts.openCalls.begin(raw);
      const app = await this.#parts.admission.find(path);
      const used = app?.kind === 'server' ? this.#parts.passthrough : protocol;
      const call = used.readHead(runId, path, raw.req, this.#parts.webhooks);
      account.begun(formOf(call));
      account.end(await this.#answer(call, app, used, request, raw, open, account));
    } catch (thrown) {
      const { status, code } = asServiceError(thrown);
      account.end(open?.interruption === 'gone' ? GONE : { status, code });
      throw thrown;
    } finally {
      open?.end();
    }
  }

  async #answer(
    asked: CallRequest,
    found: AppDescription | undefined,
    protocol: CallProtocol,
    request: FastifyRequest,
    raw: ServerResponse,
    open: OpenCall,
    account: CallAccount,
  ): Promise<CallEnd> {
    const { run, call, preformatted } = await this.#accepted(asked, found, protocol, raw, account);
    if (run.replayed) {
      // From here on, every answer carries the id of the joined run, also an answer of the error filter.
      request.id = run.runId;
      raw.setHeader('idempotency-replayed', 'true');
    }
    const { reader } = run;
    if (reader === undefined) return this.#answerLater(call, raw, run);
    try {
      const joined = run.replayed && call.stream ? await this.#progress(call, run.runId) : undefined;
      const after = run.replayed ? resumedAfter(call) : undefined;
      if (joined && after !== undefined && nothingFollows(joined, after, call.form)) return answeredNothing(raw, run);
      // The app may have changed since the joined run was accepted.
      const ofRun = joined?.preformatted ?? preformatted;
      const live = this.#liveAnswer(call, protocol, raw, reader, ofRun, account, after);
      return live
        ? await this.#answerLive(call, protocol, raw, run, reader, await live.run(open))
        : await this.#answerOnce(call, protocol, raw, run, reader, open);
    } finally {
      // If this reader was the run's last reader, the run's `onDisconnect` applies now.
      reader.close();
    }
  }

  /**
   * Returns the writer of an answer that is written while entries arrive.
   * Returns undefined if the answer is sent in one piece after the run's end.
   */
  #liveAnswer(
    { stream, forwarded, gzip, form, waitMs }: CallRequest,
    protocol: CallProtocol,
    raw: ServerResponse,
    reader: RunReader,
    preformatted: boolean,
    account: CallAccount,
    after: number | undefined,
  ): LiveAnswer | undefined {
    if (!stream && !forwarded) return undefined;
    const { keepAlives, commitMs, store, answers } = this.#parts;
    const { startedAt, firstItem: onItems } = account;
    const options = { onItems, store, answers, ...(waitMs !== undefined && { waitMs }) };
    // A function that declares a media type is answered like a server.
    const write = protocol.forwarded ?? this.#parts.passthrough.forwarded;
    return forwarded
      ? write?.(raw, reader, keepAlives, { ...options, onStream: () => account.begun('stream') })
      : new EventStream(raw, reader, keepAlives, {
          ...options,
          startedAt,
          commitMs,
          gzip,
          form,
          protocol,
          preformatted,
          ...(after !== undefined && {
            resumed: { requestId: reader.runId, from: after > 0 ? ('event' as const) : ('start' as const) },
          }),
        });
  }

  /** Returns how far the joined run has come. */
  #progress({ project }: CallRequest, runId: string): Promise<RunProgress | undefined> {
    return this.#parts.store.progress(project, runId).catch((thrown: unknown) => {
      throw withRun(asServiceError(thrown), runId);
    });
  }

  async #accepted(
    asked: CallRequest,
    found: AppDescription | undefined,
    protocol: CallProtocol,
    raw: ServerResponse,
    account: CallAccount,
  ): Promise<{ readonly run: AnsweringRun; readonly call: CallRequest; readonly preformatted: boolean }> {
    const { admission, bodies } = this.#parts;
    let app: AppDescription | undefined;
    let refused: unknown;
    try {
      app = admission.callable(asked, found);
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
      if (app !== undefined) refused = this.#violation(app, read);
      // A run may exist under the key of a rejected call, from a time when its app or its schema was another.
      const run =
        app !== undefined && refused === undefined
          ? await admission.run({ ...read, app, body: body.bytes, traceparent: account.traceparent })
          : await admission.kept(call, body.bytes);
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
  #violation({ functions }: AppDescription, { call, params, value }: ReadCall): ServiceError | undefined {
    const spec = value && functions.find(({ name }) => name === call.fn);
    return spec && this.#parts.validators.violation(spec, value, params.length);
  }

  /** Answers 202. The run continues without this caller. */
  async #answerLater(call: CallRequest, raw: ServerResponse, run: AnsweringRun): Promise<CallEnd> {
    const { project, preferenceApplied, absentMs } = call;
    const { runId, replayed } = run;
    // The `Prefer: wait` time is over. The caller did not disconnect, so `onDisconnect=cancel` no longer applies.
    // A replayed run is included because its first call's `onDisconnect` is unknown here.
    if (replayed || (run.reader && absentMs === 0)) {
      await this.#parts.store.detach(project, runId).catch((thrown: unknown) => {
        throw withRun(asServiceError(thrown), runId);
      });
    }
    send(raw, runId, 202, Buffer.from(JSON.stringify({ run_id: runId })), {
      location: `/v4/${project}/runs/${runId}`,
      ...(preferenceApplied !== undefined && { 'preference-applied': preferenceApplied }),
    });
    return { status: 202, ...replayedOf(run) };
  }

  async #answerOnce(
    call: CallRequest,
    protocol: CallProtocol,
    raw: ServerResponse,
    run: AnsweringRun,
    reader: RunReader,
    open: OpenCall,
  ): Promise<CallEnd> {
    const outcome = await outcomeInTime(reader, open, call.waitMs);
    if (outcome === 'gone') return { ...GONE, ...replayedOf(run) };
    return outcome === 'waited'
      ? this.#answerLater(call, raw, run)
      : this.#sendOutcome(call, protocol, raw, run, outcome);
  }

  async #answerLive(
    call: CallRequest,
    protocol: CallProtocol,
    raw: ServerResponse,
    run: AnsweringRun,
    reader: RunReader,
    end: StreamEnd,
  ): Promise<CallEnd> {
    const common = { items: reader.cursor, ...replayedOf(run) };
    switch (end.how) {
      case 'complete':
        // Only a resumed stream can end before its head is written.
        if (!raw.headersSent && !raw.destroyed) return answeredNothing(raw, run);
        return { status: raw.statusCode, ...common };
      case 'gone':
        return { ...GONE, ...common };
      case 'failed':
        return { status: raw.statusCode, ...common, code: end.error?.code ?? end.outcome?.error?.code ?? 'internal' };
      case 'waited':
        return this.#answerLater(call, raw, run);
      case 'early':
        if ('error' in end) throw withRun(end.error, run.runId);
        return this.#sendOutcome(call, protocol, raw, run, end.outcome);
    }
  }

  async #sendOutcome(
    { project }: CallRequest,
    protocol: CallProtocol,
    raw: ServerResponse,
    run: AnsweringRun,
    outcome: Outcome,
  ): Promise<CallEnd> {
    const { runId } = run;
    const { status, body, headers } = await protocol.answer(this.#parts.store, project, runId, outcome);
    const { error, items, streamed } = outcome;
    const more = { ...headers, ...(error && shouldRetry(raw.req.url, error)) };
    await sendBody(this.#parts.answers, raw, runId, status, body, more);
    return { status, ...replayedOf(run), ...(error && { code: error.code }), ...(streamed && { items }) };
  }
}

/** Returns the function whose schema converts the fields of a form. @throws ServiceError `unsupported_media_type`, `unavailable` */
function fieldsOf({ functions, state }: AppDescription, fn: string): FunctionSpec {
  const spec = functions.find(({ name }) => name === fn);
  if (spec === undefined && state !== 'ready')
    throw new ServiceError(
      'unavailable',
      'The app is starting, and its parameters are not known yet; send the form again.',
    );
  if (spec?.schema !== undefined) return spec;
  throw new ServiceError(
    'unsupported_media_type',
    `\`${fn}\` has no types, so the body must be \`Content-Type: application/json\`.`,
  );
}

const formOf = ({ waitMs, stream }: CallRequest): CallForm => (waitMs === 0 ? 'async' : stream ? 'stream' : 'sync');

const replayedOf = ({ replayed, runId }: AnsweringRun): Pick<CallEnd, 'replayedRun'> =>
  replayed ? { replayedRun: runId } : {};

function answeredNothing(raw: ServerResponse, run: AnsweringRun): CallEnd {
  sendNothing(raw, run.runId);
  return { status: 204, ...replayedOf(run) };
}

/**
 * Waits for the outcome. Returns `gone` if the caller disconnects first, and `waited` if `waitMs` is over first.
 *
 * @throws ServiceError of the reader, or `unavailable` if this gateway stops
 */
function outcomeInTime(
  reader: RunReader,
  open: OpenCall,
  waitMs: number | undefined,
): Promise<Outcome | 'gone' | 'waited'> {
  const end = Promise.withResolvers<Outcome | 'gone' | 'waited'>();
  open.onInterrupt((why) => (why === 'gone' ? end.resolve(why) : end.reject(withRun(why, reader.runId))));
  if (open.interruption === undefined) reader.outcome().then(end.resolve, end.reject);
  if (waitMs === undefined) return end.promise;
  const timer = setTimeout(() => end.resolve('waited'), waitMs);
  return end.promise.finally(() => clearTimeout(timer));
}

/** Returns the same error with the run's id in its body, because the run may continue or may have ended. */
const withRun = (error: ServiceError, runId: string): ServiceError =>
  error.runId !== undefined ? error : new ServiceError(error.code, error.message, { runId, cause: error });
