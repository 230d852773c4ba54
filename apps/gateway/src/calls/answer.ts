// Contract 1 to 3: one call from its request to its answer.
import type { ServerResponse } from 'node:http';
import { type AppDescription, type Outcome, ServiceError } from '@inference-proxy/contracts';
import type { WebhookUrls } from '@inference-proxy/egress';
import type { GatewayStore, RunReader } from '@inference-proxy/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asServiceError, send, sendNothing } from '../http/answer.ts';
import type { AnswersInFlight } from '../http/answers-in-flight.ts';
import { sendBody } from '../http/stored-answer.ts';
import { shouldRetry } from '../openai/openai-errors.ts';
import { type AccountParts, type Answered, CallAccount } from '../operations/call-account.ts';
import type { CallForm } from '../operations/call-metrics.ts';
import { EventStream, type StreamEnd } from '../streaming/event-stream.ts';
import type { KeepAlive } from '../streaming/keep-alive.ts';
import { nothingFollows } from '../streaming/last-event.ts';
import { type Acceptance, type AnsweringRun, resumedAfter } from './accept.ts';
import type { Bodies } from './bodies.ts';
import type { CallPath, CallRequest } from './call-request.ts';
import type { OpenCall, OpenCalls } from './departure.ts';
import { type LiveAnswer, managed, type Surface } from './surface.ts';

export interface CallsParts {
  readonly store: GatewayStore;
  readonly acceptance: Acceptance;
  readonly bodies: Bodies;
  readonly answers: AnswersInFlight;
  readonly openCalls: OpenCalls;
  readonly keepAlives: KeepAlive;
  readonly webhooks: WebhookUrls;
  /** In whose terms servers of apps' own are called. */
  readonly passthrough: Surface;
  readonly accounts: AccountParts;
  /** `STREAM_COMMIT_MS`. */
  readonly commitMs: number;
}

/** What is known of an app that is there no more. */
const NO_APP = { functions: [] };

/** The caller left; nobody is told. */
const GONE: Answered = { status: 'gone' };

export class Calls {
  constructor(private readonly parts: CallsParts) {}

  /** What a call of this app is for, where somebody serves it. @throws ServiceError `unavailable` */
  async kindOf(path: Pick<CallPath, 'project' | 'app'>): Promise<AppDescription['kind'] | undefined> {
    return (await this.parts.acceptance.find(path))?.kind;
  }

  /** @throws what the error filter answers: nothing has been written then */
  async answer(
    request: FastifyRequest<{ Params: CallPath }>,
    reply: FastifyReply,
    asked: Surface = managed,
  ): Promise<void> {
    reply.hijack();
    const { raw } = reply;
    const { params: path, id: runId } = request;
    const account = new CallAccount(this.parts.accounts, request);
    let open: OpenCall | undefined;
    try {
      open = this.parts.openCalls.begin(raw);
      const app = await this.parts.acceptance.find(path);
      const surface = app?.kind === 'server' ? this.parts.passthrough : asked;
      const call = surface.ask(runId, path, raw.req, this.parts.webhooks);
      account.begun(formOf(call));
      account.end(await this.#answer(call, app, surface, request, raw, open, account));
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
    surface: Surface,
    request: FastifyRequest,
    raw: ServerResponse,
    open: OpenCall,
    account: CallAccount,
  ): Promise<Answered> {
    const { run, call, preformatted } = await this.#accepted(asked, found, surface, raw, account);
    if (run.replayed) {
      // Whatever answers from here on, the error filter too, answers for that run.
      request.id = run.runId;
      raw.setHeader('idempotency-replayed', 'true');
    }
    const { reader } = run;
    if (reader === undefined) return this.#answerLater(call, raw, run);
    try {
      const after = run.replayed ? resumedAfter(call) : undefined;
      if (after !== undefined && (await this.#isOver(call, run.runId, after))) return answeredNothing(raw, run);
      const live = this.#liveAnswer(call, surface, raw, reader, preformatted, account, after);
      return live
        ? await this.#answerLive(call, surface, raw, run, reader, await live.run(open))
        : await this.#answerOnce(call, surface, raw, run, reader, open);
    } finally {
      // With the last reader goes the run, where it was not to go on without.
      reader.close();
    }
  }

  /** What writes the answer as it comes; nothing where it is given at once when the run has ended. */
  #liveAnswer(
    { stream, forwarded, gzip, form, waitMs }: CallRequest,
    surface: Surface,
    raw: ServerResponse,
    reader: RunReader,
    preformatted: boolean,
    account: CallAccount,
    after: number | undefined,
  ): LiveAnswer | undefined {
    if (!stream && !forwarded) return undefined;
    const { keepAlives, commitMs, store, answers } = this.parts;
    const { startedAt, firstItem: onItems } = account;
    const options = { onItems, store, answers, ...(waitMs !== undefined && { waitMs }) };
    return forwarded
      ? surface.forwarded?.(raw, reader, keepAlives, { ...options, onStream: () => account.begun('stream') })
      : new EventStream(raw, reader, keepAlives, {
          ...options,
          startedAt,
          commitMs,
          gzip,
          form,
          surface,
          preformatted,
          ...(after !== undefined && {
            resumed: { requestId: reader.runId, from: after > 0 ? ('event' as const) : ('start' as const) },
          }),
        });
  }

  /** Whether the joined run has ended and no event follows the one that the caller has. */
  async #isOver({ project, form }: CallRequest, runId: string, after: number): Promise<boolean> {
    const extent = await this.parts.store.extent(project, runId).catch((thrown: unknown) => {
      throw withRun(asServiceError(thrown), runId);
    });
    return extent !== undefined && nothingFollows(extent, after, form);
  }

  async #accepted(
    asked: CallRequest,
    found: AppDescription | undefined,
    surface: Surface,
    raw: ServerResponse,
    account: CallAccount,
  ): Promise<{ readonly run: AnsweringRun; readonly call: CallRequest; readonly preformatted: boolean }> {
    const { acceptance, bodies } = this.parts;
    let app: AppDescription | undefined;
    let refused: unknown;
    try {
      app = acceptance.callable(asked, found);
      account.known(asked.fn);
    } catch (thrown) {
      // Nothing is read for it, unless a run may be there under its key.
      if (asked.idempotencyKey === undefined) throw thrown;
      refused = thrown;
    }
    return bodies.hold(raw, async (bytes) => {
      const body = surface.body(bytes);
      const read = surface.read(asked, app ?? NO_APP, body, raw.req);
      const { call } = read;
      account.begun(formOf(call));
      const run = app
        ? await acceptance.run({ ...read, app, body, traceparent: account.traceparent })
        : await acceptance.kept(call, body);
      if (run === undefined) throw refused;
      return { run, call, preformatted: app?.preformatted ?? true };
    });
  }

  /** 202: the run goes on without this caller. */
  async #answerLater(call: CallRequest, raw: ServerResponse, run: AnsweringRun): Promise<Answered> {
    const { project, preferenceApplied, absentMs } = call;
    const { runId, replayed } = run;
    // It has waited as long as it meant to, which is not leaving: `cancel` is over. How the run that it joined was called is not known here.
    if (replayed || (run.reader && absentMs === 0)) {
      await this.parts.store.goOn(project, runId).catch((thrown: unknown) => {
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
    surface: Surface,
    raw: ServerResponse,
    run: AnsweringRun,
    reader: RunReader,
    open: OpenCall,
  ): Promise<Answered> {
    const outcome = await outcomeInTime(reader, open, call.waitMs);
    if (outcome === 'gone') return { ...GONE, ...replayedOf(run) };
    return outcome === 'waited'
      ? this.#answerLater(call, raw, run)
      : this.#sendOutcome(call, surface, raw, run, outcome);
  }

  async #answerLive(
    call: CallRequest,
    surface: Surface,
    raw: ServerResponse,
    run: AnsweringRun,
    reader: RunReader,
    end: StreamEnd,
  ): Promise<Answered> {
    const told = { items: reader.cursor, ...replayedOf(run) };
    switch (end.how) {
      case 'complete':
        // Only a resumed stream can end before its head is written.
        if (!raw.headersSent && !raw.destroyed) return answeredNothing(raw, run);
        return { status: raw.statusCode, ...told };
      case 'gone':
        return { ...GONE, ...told };
      case 'failed':
        return { status: raw.statusCode, ...told, code: end.error?.code ?? end.outcome?.error?.code ?? 'internal' };
      case 'waited':
        return this.#answerLater(call, raw, run);
      case 'early':
        if ('error' in end) throw withRun(end.error, run.runId);
        return this.#sendOutcome(call, surface, raw, run, end.outcome);
    }
  }

  async #sendOutcome(
    { project }: CallRequest,
    surface: Surface,
    raw: ServerResponse,
    run: AnsweringRun,
    outcome: Outcome,
  ): Promise<Answered> {
    const { runId } = run;
    const { status, body, headers } = await surface.answer(this.parts.store, project, runId, outcome);
    const { error, items, streamed } = outcome;
    const more = { ...headers, ...(error && shouldRetry(raw.req.url, error)) };
    await sendBody(this.parts.answers, raw, runId, status, body, more);
    return { status, ...replayedOf(run), ...(error && { code: error.code }), ...(streamed && { items }) };
  }
}

const formOf = ({ waitMs, stream }: CallRequest): CallForm => (waitMs === 0 ? 'async' : stream ? 'stream' : 'sync');

const replayedOf = ({ replayed, runId }: AnsweringRun): Pick<Answered, 'replayedRun'> =>
  replayed ? { replayedRun: runId } : {};

function answeredNothing(raw: ServerResponse, run: AnsweringRun): Answered {
  sendNothing(raw, run.runId);
  return { status: 204, ...replayedOf(run) };
}

/** The outcome, or why there will be none for this caller. @throws ServiceError of the reader, or `unavailable` when this gateway stops */
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

/** The same error with the run's id in its body: the run may go on, or have gone on. */
const withRun = (error: ServiceError, runId: string): ServiceError =>
  error.runId !== undefined ? error : new ServiceError(error.code, error.message, { runId, cause: error });
