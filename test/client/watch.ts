// Contract 5: reads a run's stream with an unmodified EventSource, which resumes the stream after a broken connection.
import { EventSource } from 'eventsource';
import type { Caller } from './caller.ts';

export interface Watched {
  readonly ids: number[];
  readonly data: string[];
  /** Resolves with the status at which the EventSource stopped. */
  readonly closed: Promise<number | undefined>;
}

/** Replaces the reconnection time at the beginning of a stream, one second, by 10 ms. A test with many cuts would mostly wait. */
const withoutWait = () =>
  new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const text = Buffer.from(chunk).toString('latin1').replace('retry: 1000\n', 'retry: 10\n');
      controller.enqueue(Buffer.from(text, 'latin1'));
    },
  });

/**
 * Reads a run until its end. The EventSource sends the token by a custom `fetch`.
 *
 * @param port of the gateway, or of a proxy
 * @param options.hurried the EventSource reconnects after 10 ms
 */
export function watch({ bearer, path }: Caller, runId: string, port: number, { hurried = false } = {}): Watched {
  const ids: number[] = [];
  const data: string[] = [];
  const source = new EventSource(`http://127.0.0.1:${port}${path}/runs/${runId}/stream`, {
    async fetch(url, init) {
      const answer = await fetch(url, { ...init, headers: { ...init.headers, authorization: bearer } });
      const { body, status, headers, redirected } = answer;
      return hurried && body
        ? { body: body.pipeThrough(withoutWait()), status, headers, redirected, url: answer.url }
        : answer;
    },
  });
  source.onmessage = (event) => {
    ids.push(Number(event.lastEventId));
    data.push(String(event.data));
  };
  const closed = new Promise<number | undefined>((resolve) => {
    source.onerror = (event) => {
      if (source.readyState === source.CLOSED) resolve(event.code);
    };
  });
  return { ids, data, closed };
}
