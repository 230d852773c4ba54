// Contract 7, "Versions": the log of a version, as JSON or as a stream that follows the roll-out.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { VersionRecord, VersionStore } from '@inference-proxy/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { send } from '../http/answer.ts';
import type { OpenCalls } from '../http/open-calls.ts';
import { Query } from '../http/request-head.ts';
import { abort } from '../http/stored-answer.ts';
import { encodeEvent, keepAliveComment } from '../streaming/events.ts';
import { type IdleStream, type KeepAlive, writeEventsHead } from '../streaming/live-response.ts';
import type { VersionPath, Versions } from './versions.ts';

export interface VersionLogsParts {
  readonly versions: Versions;
  readonly store: VersionStore;
  readonly openCalls: OpenCalls;
  readonly keepAlives: KeepAlive;
}

export class VersionLogs {
  readonly #parts: VersionLogsParts;

  constructor(parts: VersionLogsParts) {
    this.#parts = parts;
  }

  /** Answers a request for the log. @throws errors for the error filter, only before a byte of the answer is written */
  async answer(request: FastifyRequest<{ Params: VersionPath }>, reply: FastifyReply): Promise<void> {
    reply.hijack();
    const { raw } = reply;
    const { project, app } = request.params;
    const follow = Query.of(raw.req.url).flag('follow');
    const record = await this.#parts.versions.find(request.params);
    if (follow) {
      await this.#follow(request, raw, record);
      return;
    }
    const { lines, cut } = await this.#parts.store.log(project, app, record.version);
    const body = Buffer.from(JSON.stringify({ lines, truncated: cut > 0 }));
    send(raw, request.id, 200, body, { 'cache-control': 'no-store' });
  }

  async #follow(
    { id, params: { project, app } }: FastifyRequest<{ Params: VersionPath }>,
    raw: ServerResponse,
    { version }: VersionRecord,
  ): Promise<void> {
    const { versions, store, openCalls, keepAlives } = this.#parts;
    const open = openCalls.begin(raw);
    const left = new AbortController();
    open.onInterrupt(() => left.abort());
    const idle: IdleStream = { idleTicks: 0, keepAlive: () => void raw.write(keepAliveComment) };
    try {
      writeEventsHead(raw, { requestId: id, startedAt: performance.now(), gzip: false });
      raw.flushHeaders();
      if (raw.req.method === 'HEAD') return;
      keepAlives.add(idle);
      for (let sent = 0; !left.signal.aborted; ) {
        // The record is read before the lines, so the lines of an ended roll-out are complete.
        const record = await versions.find({ project, app, version });
        const { lines, total } = await store.log(project, app, version, sent);
        sent = total;
        for (const line of lines) await written(raw, encodeEvent('line', line), left.signal);
        idle.idleTicks = 0;
        if (!record.rollingOut) {
          raw.write(encodeEvent('end', await versions.view({ project, app, version })));
          return;
        }
        await store.changed(project, left.signal);
      }
    } catch (error) {
      if (!raw.headersSent) throw error;
      // The stream ends without its last event, so the reader knows that the log is not complete.
      abort(raw);
    } finally {
      keepAlives.delete(idle);
      open.end();
      raw.end();
    }
  }
}

/** Writes an event and waits while the socket takes no bytes. */
async function written(raw: ServerResponse, event: Buffer, signal: AbortSignal): Promise<void> {
  if (!raw.write(event) && !signal.aborted) await once(raw, 'drain', { signal }).catch(() => {});
}
