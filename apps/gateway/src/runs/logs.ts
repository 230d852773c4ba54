// Contract 5, "Logs: `GET /runs/{run_id}/logs`": returns the lines that one run printed or logged.

import type { ServerResponse } from 'node:http';
import type { Logger } from '@inference-proxy/platform';
import type { GatewayStore, RunLog } from '@inference-proxy/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { send, sendNothing } from '../http/answer.ts';
import { ofRun } from '../http/not-found.ts';
import type { OpenCalls } from '../http/open-calls.ts';
import { Query, type RunPath } from '../http/request-head.ts';
import { logData } from '../streaming/events.ts';
import { type KeepAlive, writeEventsHead } from '../streaming/live-response.ts';
import { LogStream } from '../streaming/log-stream.ts';
import { type ResumeRequest, resumeRequest } from './resume-request.ts';

export interface RunLogsParts {
  readonly store: GatewayStore;
  readonly openCalls: OpenCalls;
  readonly keepAlives: KeepAlive;
  readonly logger: Logger;
}

export class RunLogs {
  readonly #parts: RunLogsParts;

  constructor(parts: RunLogsParts) {
    this.#parts = parts;
  }

  /** Answers a request for logs. @throws errors for the error filter, only before a byte of the answer is written */
  async answer(request: FastifyRequest<{ Params: RunPath }>, reply: FastifyReply): Promise<void> {
    reply.hijack();
    const { raw } = reply;
    const { project, run: runId } = request.params;
    const follow = Query.of(raw.req.url).flag('follow');
    const asked = resumeRequest(raw.req);
    const log = await ofRun(project, runId, () => this.#parts.store.logs(project, runId, asked.after));
    if (!follow) {
      send(raw, request.id, 200, Buffer.from(JSON.stringify(logView(runId, log))), { 'cache-control': 'no-store' });
    } else if (log.ended && log.lines.length === 0) {
      sendNothing(raw, request.id);
    } else {
      await this.#follow(request, raw, asked);
    }
  }

  async #follow(
    { id: requestId, params: { project, run: runId } }: FastifyRequest<{ Params: RunPath }>,
    raw: ServerResponse,
    { after = 0, gzip }: ResumeRequest,
  ): Promise<void> {
    const { store, openCalls, keepAlives, logger } = this.#parts;
    const startedAt = performance.now();
    const head = { requestId, startedAt, gzip };
    if (raw.req.method === 'HEAD') {
      writeEventsHead(raw, head);
      raw.end();
      return;
    }
    const open = openCalls.begin(raw);
    const reader = store.read(project, runId, 'logs', after);
    try {
      const end = await new LogStream(raw, reader, keepAlives, head, after).run(open);
      if (end.how === 'early' && 'error' in end) throw end.error;
      const ms = Math.round(performance.now() - startedAt);
      const how = end.how === 'failed' ? { code: end.error?.code } : { end: end.how };
      logger.info({ runId, project, requestId, ...how, ms }, 'logs followed');
    } finally {
      reader.close();
      open.end();
    }
  }
}

const logView = (runId: string, { lines, cut, ended }: RunLog): object => ({
  run_id: runId,
  ended,
  cut,
  logs: lines.map((line) => ({ seq: line.seq, ...logData(line) })),
});
