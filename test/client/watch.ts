// Contract 5: reads a run's stream with an unmodified EventSource, which resumes the stream after a broken connection.
import { EventSource } from 'eventsource';
import type { Caller } from './caller.ts';

export interface Watched {
  readonly ids: number[];
  readonly data: string[];
  /** Resolves with the status at which the EventSource stopped. */
  readonly closed: Promise<number | undefined>;
}

/**
 * Reads a run until its end. The EventSource sends the token by a custom `fetch`.
 *
 * @param port of the gateway, or of a proxy
 */
export function watch({ bearer, path }: Caller, runId: string, port: number): Watched {
  const ids: number[] = [];
  const data: string[] = [];
  const source = new EventSource(`http://127.0.0.1:${port}${path}/runs/${runId}/stream`, {
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization: bearer } }),
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
