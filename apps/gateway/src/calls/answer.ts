// Contract 1 to 3: one call from its request to its answer.
import type { ServerResponse } from 'node:http';
import { type Outcome, ServiceError } from '@inference-proxy/contracts';
import type { Logger } from '@inference-proxy/platform';
import type { GatewayStore, RunReader } from '@inference-proxy/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asServiceError, send } from '../http/answer.ts';
import { EventStream, type StreamEnd } from '../streaming/event-stream.ts';
import type { KeepAlive } from '../streaming/keep-alive.ts';
import type { Acceptance } from './accept.ts';
import type { Bodies } from './bodies.ts';
import { type CallPath, type CallRequest, callRequest, type WebhookRules } from './call-request.ts';
import type { OpenCall, OpenCalls } from './departure.ts';
import { envelopeAnswer } from './outcome.ts';

export interface CallsParts {
  readonly store: GatewayStore;
  readonly acceptance: Acceptance;
  readonly bodies: Bodies;
  readonly openCalls: OpenCalls;
  readonly keepAlives: KeepAlive;
  readonly webhookRules: WebhookRules;
  readonly logger: Logger;
  /** `STREAM_COMMIT_MS`. */
  readonly commitMs: number;
}

/** What the log line of a call says of its end. */
interface Answered {
  readonly status: number | 'gone';
  readonly code?: string;
  readonly items?: number;
}

/** The caller left; in the log only. */
const GONE: Answered = { status: 'gone' };

export class Calls {
  /** Its lines hold no headers, so there is nothing to hide in them: looking for it was 7 % of a call. */
  readonly #logger: Logger;

  constructor(private readonly parts: CallsParts) {
    this.#logger = parts.logger.child({}, { redact: [] });
  }

  /** @throws what the error filter answers: nothing has been written then */
  async answer(request: FastifyRequest<{ Params: CallPath }>, reply: FastifyReply): Promise<void> {
    const startedAt = performance.now();
    reply.hijack();
    const { raw } = reply;
    const { params: path, id: runId } = request;
    const line = { runId, project: path.project, app: path.app, function: path.function };
    const open = this.parts.openCalls.begin(raw);
    try {
      const call = callRequest(runId, path, raw.req, this.parts.webhookRules);
      const answered = await this.#answer(call, raw, open, startedAt);
      this.#log(line, answered, startedAt);
    } catch (thrown) {
      const { status, code } = asServiceError(thrown);
      this.#log(line, open.interruption === 'gone' ? GONE : { status, code }, startedAt);
      throw thrown;
    } finally {
      open.end();
    }
  }

  async #answer(call: CallRequest, raw: ServerResponse, open: OpenCall, startedAt: number): Promise<Answered> {
    const { acceptance, bodies } = this.parts;
    const app = await acceptance.app(call);
    const reader = await bodies.hold(raw, (params) => acceptance.run(call, app, params));
    if (reader === undefined) return this.#answerAsync(call, raw);
    try {
      if (!call.stream) return await this.#answerOnce(call, raw, reader, open);
      const { keepAlives, commitMs } = this.parts;
      const options = { startedAt, commitMs, gzip: call.gzip, preformatted: app.preformatted };
      const stream = new EventStream(raw, reader, keepAlives, options);
      return await this.#answerStream(call, raw, reader, await stream.run(open));
    } finally {
      // With the last reader goes the run, where nobody was promised it.
      reader.close();
    }
  }

  #answerAsync(call: CallRequest, raw: ServerResponse): Answered {
    const { runId, project } = call;
    send(raw, runId, 202, Buffer.from(JSON.stringify({ run_id: runId })), {
      location: `/v4/${project}/runs/${runId}`,
      ...(call.async === 'preference' && { 'preference-applied': 'respond-async' }),
    });
    return { status: 202 };
  }

  async #answerOnce(call: CallRequest, raw: ServerResponse, reader: RunReader, open: OpenCall): Promise<Answered> {
    const outcome = await outcomeUnlessInterrupted(reader, open);
    return outcome === 'gone' ? GONE : this.#sendEnvelope(call, raw, outcome);
  }

  async #answerStream(call: CallRequest, raw: ServerResponse, reader: RunReader, end: StreamEnd): Promise<Answered> {
    const items = reader.cursor;
    switch (end.how) {
      case 'complete':
        return { status: 200, items };
      case 'gone':
        return { ...GONE, items };
      case 'failed':
        return { status: 200, items, code: end.error?.code ?? end.outcome?.error?.code ?? 'internal' };
      case 'early':
        if ('error' in end) throw withRun(end.error, call.runId);
        return this.#sendEnvelope(call, raw, end.outcome);
    }
  }

  async #sendEnvelope(call: CallRequest, raw: ServerResponse, outcome: Outcome): Promise<Answered> {
    const { runId, project } = call;
    const { status, body, headers } = await envelopeAnswer(this.parts.store, project, runId, outcome);
    send(raw, runId, status, body, headers);
    const { error, items, streamed } = outcome;
    return { status, ...(error && { code: error.code }), ...(streamed && { items }) };
  }

  #log(line: object, answered: Answered, startedAt: number): void {
    const ms = Math.round((performance.now() - startedAt) * 10) / 10;
    this.#logger.info({ ...line, ...answered, ms }, 'call');
  }
}

/** The outcome, or why there will be none for this caller. @throws ServiceError of the reader, or `unavailable` when this gateway stops */
function outcomeUnlessInterrupted(reader: RunReader, open: OpenCall): Promise<Outcome | 'gone'> {
  return new Promise((resolve, reject) => {
    open.onInterrupt((why) => (why === 'gone' ? resolve(why) : reject(withRun(why, reader.runId))));
    if (open.interruption === undefined) reader.outcome().then(resolve, reject);
  });
}

/** The same error with the run's id in its body: the run may go on, or have gone on. */
const withRun = (error: ServiceError, runId: string): ServiceError =>
  error.runId !== undefined ? error : new ServiceError(error.code, error.message, { runId, cause: error });
