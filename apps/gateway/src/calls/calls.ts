// Contract 1 to 3: the route of function calls. Answers one call, from its request to the end of its answer.
import type { ServerResponse } from 'node:http';
import { type AppDescription, errorObject, type Outcome, ServiceError } from '@inference-proxy/contracts';
import type { WebhookUrls } from '@inference-proxy/egress';
import type { GatewayStore, RunProgress, RunReader } from '@inference-proxy/store';
import { Controller, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CallGuard } from '../auth/tokens.ts';
import { asServiceError, send, sendNothing } from '../http/answer.ts';
import type { AnswersInFlight } from '../http/answers-in-flight.ts';
import type { OpenCall, OpenCalls } from '../http/open-calls.ts';
import { shouldRetry } from '../http/openai-errors.ts';
import type { CallPath } from '../http/request-head.ts';
import { sendBody } from '../http/stored-answer.ts';
import { type AccountParts, CallAccount, type CallEnd } from '../operations/call-account.ts';
import { EventStream } from '../streaming/event-stream.ts';
import { nothingFollows } from '../streaming/events.ts';
import type { KeepAlive, StreamEnd } from '../streaming/live-response.ts';
import { type Admission, type AnsweringRun, formOf, resumedAfter } from './admission.ts';
import type { CallProtocol, LiveAnswer } from './call-protocol.ts';
import { answeredByMedia, type CallRequest, callRequest, parametersOf } from './call-request.ts';
import { envelopeAnswer } from './outcome.ts';

export interface CallsParts {
  readonly store: GatewayStore;
  readonly admission: Admission;
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

/** A JSON object of parameters is answered with the envelope. */
export const functionProtocol: CallProtocol = {
  readHead: (runId, path, head, webhooks) => callRequest(runId, path, head, webhooks, true),
  checkBody: parametersOf,
  readBody: (call, app, { bytes, value }) => ({
    call: answeredByMedia(call, app.functions),
    params: bytes,
    ...(value && { value }),
  }),
  answersBodies: true,
  answer: envelopeAnswer,
  error: errorObject,
};

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
    const { run, call, preformatted } = await this.#parts.admission.accept(asked, found, protocol, raw, open, account);
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
        : await this.#answerOnce(call, protocol, raw, run, reader, open, account);
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
    account: CallAccount,
  ): Promise<CallEnd> {
    const { answersBodies = false } = protocol;
    const outcome = await outcomeInTime(reader, open, call.waitMs, answersBodies);
    if (outcome === 'gone') return { ...GONE, ...replayedOf(run) };
    if (outcome === 'waited') return this.#answerLater(call, raw, run);
    if (outcome !== 'body' && !(answersBodies && outcome.head))
      return this.#sendOutcome(call, protocol, raw, run, outcome);
    // The items of the body are not read yet. The result of an ended run is.
    const body =
      outcome !== 'body' && !outcome.streamed ? reader : this.#parts.store.read(call.project, run.runId, 'answer', 0);
    try {
      const { waitMs: _over, ...rest } = call;
      const asBody = { ...rest, forwarded: true };
      const live = this.#liveAnswer(asBody, protocol, raw, body, true, account, undefined) as LiveAnswer;
      return await this.#answerLive(call, protocol, raw, run, body, await live.run(open));
    } finally {
      body.close();
    }
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

@Controller('v4/:project/:app')
@UseGuards(CallGuard)
export class CallsController {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Takes the raw request and reply: the body's bytes are forwarded unparsed, and the answer is written while it arrives. */
  @Post(':function')
  call(@Req() request: FastifyRequest<{ Params: CallPath }>, @Res() reply: FastifyReply): Promise<void> {
    return this.#calls.answer(request, reply, functionProtocol);
  }
}

const replayedOf = ({ replayed, runId }: AnsweringRun): Pick<CallEnd, 'replayedRun'> =>
  replayed ? { replayedRun: runId } : {};

function answeredNothing(raw: ServerResponse, run: AnsweringRun): CallEnd {
  sendNothing(raw, run.runId);
  return { status: 204, ...replayedOf(run) };
}

/**
 * Waits for the outcome. Returns `gone` if the caller disconnects first, `waited` if `waitMs` is over first, and `body` if the answer
 * proves to be a body first.
 *
 * @throws ServiceError of the reader, or `unavailable` if this gateway stops
 */
function outcomeInTime(
  reader: RunReader,
  open: OpenCall,
  waitMs: number | undefined,
  answersBodies: boolean,
): Promise<Outcome | 'gone' | 'waited' | 'body'> {
  const end = Promise.withResolvers<Outcome | 'gone' | 'waited' | 'body'>();
  const headed = answersBodies ? () => end.resolve('body') : undefined;
  open.onInterrupt((why) => (why === 'gone' ? end.resolve(why) : end.reject(withRun(why, reader.runId))));
  if (open.interruption === undefined) reader.outcome(headed).then(end.resolve, end.reject);
  if (waitMs === undefined) return end.promise;
  const timer = setTimeout(() => end.resolve('waited'), waitMs);
  return end.promise.finally(() => clearTimeout(timer));
}

/** Returns the same error with the run's id in its body, because the run may continue or may have ended. */
const withRun = (error: ServiceError, runId: string): ServiceError =>
  error.runId !== undefined ? error : new ServiceError(error.code, error.message, { runId, cause: error });
