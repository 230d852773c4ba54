// Contract 5, "Resume: `GET /runs/{run_id}/stream`": sends a run's items after the reader's last item, then live.
// A run may have any number of readers, on any gateway.
import type { ServerResponse } from 'node:http';
import { errorObject, ServiceError } from '@inference-proxy/contracts';
import type { Logger } from '@inference-proxy/platform';
import type { GatewayStore } from '@inference-proxy/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asServiceError, sendNothing } from '../http/answer.ts';
import type { AnswersInFlight } from '../http/answers-in-flight.ts';
import { ofRun } from '../http/not-found.ts';
import type { OpenCall, OpenCalls } from '../http/open-calls.ts';
import type { RunPath } from '../http/request-head.ts';
import { EventStream } from '../streaming/event-stream.ts';
import { nothingFollows } from '../streaming/events.ts';
import { type KeepAlive, type StreamEnd, writeEventsHead } from '../streaming/live-response.ts';
import { resumeRequest } from './resume-request.ts';

export interface ResumeParts {
  readonly store: GatewayStore;
  readonly openCalls: OpenCalls;
  readonly keepAlives: KeepAlive;
  readonly answers: AnswersInFlight;
  readonly logger: Logger;
  /** `STREAM_COMMIT_MS`. */
  readonly commitMs: number;
}

/** The end of a stream, as the log line reports it. */
interface ResumeEnd {
  readonly status: number | 'gone';
  readonly code?: string;
  /** Number of the last item that the reader got. */
  readonly upTo?: number;
}

export class Resume {
  readonly #parts: ResumeParts;

  constructor(parts: ResumeParts) {
    this.#parts = parts;
  }

  /** Answers a request for a stream. @throws errors for the error filter, only before a byte of the answer is written */
  async answer(request: FastifyRequest<{ Params: RunPath }>, reply: FastifyReply): Promise<void> {
    const startedAt = performance.now();
    reply.hijack();
    const { project, run: runId } = request.params;
    const open = this.#parts.openCalls.begin(reply.raw);
    let answered: ResumeEnd = { status: 'gone' };
    try {
      answered = await this.#answer(request, reply.raw, open, startedAt);
    } catch (thrown) {
      const { status, code } = asServiceError(thrown);
      if (open.interruption !== 'gone') answered = { status, code };
      throw thrown;
    } finally {
      open.end();
      const ms = Math.round((performance.now() - startedAt) * 10) / 10;
      this.#parts.logger.info({ runId, project, requestId: request.id, ...answered, ms }, 'stream read');
    }
  }

  async #answer(
    { id: requestId, params: { project, run: runId } }: FastifyRequest<{ Params: RunPath }>,
    raw: ServerResponse,
    open: OpenCall,
    startedAt: number,
  ): Promise<ResumeEnd> {
    const { store, keepAlives, commitMs, answers } = this.#parts;
    const asked = resumeRequest(raw.req);
    const progress = await ofRun(project, runId, () => store.progress(project, runId));
    if (nothingFollows(progress, asked.after, asked.form)) return answeredNothing(raw, requestId);
    // This error is sent before the first event, which may be an event without items.
    if ((asked.after ?? 0) < progress.gone) {
      throw new ServiceError('items_gone', 'The items after this event are no longer kept; look the run up instead.', {
        runId,
      });
    }
    if (raw.req.method === 'HEAD') {
      writeEventsHead(raw, { requestId, startedAt, gzip: asked.gzip });
      raw.end();
      return { status: 200 };
    }
    const reader = store.read(project, runId, asked.form === 'rich' ? 'rich' : 'items', asked.after ?? 0);
    try {
      const stream = new EventStream(raw, reader, keepAlives, {
        startedAt,
        gzip: asked.gzip,
        form: asked.form,
        preformatted: progress.preformatted,
        protocol: { error: errorObject },
        commitMs,
        store,
        answers,
        resumed: { requestId, from: asked.after ? 'event' : 'start' },
      });
      const end = await stream.run(open);
      if (end.how === 'complete' && !raw.headersSent) return answeredNothing(raw, requestId);
      return answeredBy(end, reader.cursor);
    } finally {
      reader.close();
    }
  }
}

function answeredNothing(raw: ServerResponse, requestId: string): ResumeEnd {
  sendNothing(raw, requestId);
  return { status: 204 };
}

/** Returns the log line's fields for an end. @throws ServiceError the reason if there is no stream */
function answeredBy(end: StreamEnd, upTo: number): ResumeEnd {
  if (end.how === 'gone') return { status: 'gone', upTo };
  if (end.how === 'failed')
    return { status: 200, upTo, code: end.error?.code ?? end.outcome?.error?.code ?? 'internal' };
  if (end.how === 'early' && 'error' in end) throw end.error;
  return { status: 200, upTo };
}
