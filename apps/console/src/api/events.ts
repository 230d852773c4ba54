// Contract 3 and 5: reads server-sent events with `fetch`, because an `EventSource` cannot send the token in a header.
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { errorOf, send, Unreachable } from './request.ts';

/** The pause before the stream is opened again, in milliseconds. */
const PAUSE_MS = 1_000;

/** Emits the events of one answer. Ends with the answer. */
export async function* eventsOf(answer: Response): AsyncGenerator<EventSourceMessage> {
  if (answer.body === null) return;
  const parsed: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => void parsed.push(event) });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parser.feed(part.value);
      yield* parsed.splice(0);
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/**
 * Emits the events of a stream and resumes it after a break, each event once.
 *
 * @param isLast whether the stream ends with this event
 * @throws ApiError if the gateway refuses the stream
 */
export async function* resumedEvents(
  url: string,
  signal: AbortSignal,
  isLast: (event: EventSourceMessage) => boolean,
): AsyncGenerator<EventSourceMessage> {
  let after = '0';
  while (!signal.aborted) {
    try {
      const headers = { accept: 'text/event-stream', 'last-event-id': after };
      const answer = await send(url, { signal, headers });
      if (answer.status === 204) return;
      if (!answer.ok) {
        const refused = await errorOf(answer);
        // A gateway that starts or drains answers 503. The run may still exist.
        if (refused.status !== 503 && refused.status !== 502) throw refused;
      } else
        for await (const event of eventsOf(answer)) {
          if (event.id !== undefined) after = event.id;
          yield event;
          if (isLast(event)) return;
        }
    } catch (error) {
      if (signal.aborted) return;
      // A break in the middle of an answer is a TypeError.
      if (!(error instanceof Unreachable || error instanceof TypeError)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
