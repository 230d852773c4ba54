// Contract 3: reads server-sent events from an answer.
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { type Answer, brokenConnection } from './service.ts';

/** Yields the events of an answer as they arrive. @throws Failure if the connection breaks */
export async function* eventsOf(answer: Answer, url: string): AsyncGenerator<EventSourceMessage> {
  let arrived: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => arrived.push(event) });
  const decoder = new TextDecoder();
  try {
    for await (const chunk of answer.bytes) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      const events = arrived;
      arrived = [];
      yield* events;
    }
  } catch (error) {
    throw brokenConnection(url, error);
  }
}
