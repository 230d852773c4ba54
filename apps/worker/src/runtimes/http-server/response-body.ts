// Contract 1, "Custom runtimes": reads the body of an answer by its form.
import { type AnswerForm, ServiceError } from '@inference-proxy/contracts';
import type { ItemsFrame } from '../runtime.ts';
import type { AnswerLimits, BodyReader } from './body-reader.ts';
import { ItemFrames } from './item-frames.ts';
import { NdjsonItems } from './ndjson-items.ts';
import { SseItems } from './sse-items.ts';
import { TextPieces } from './text-pieces.ts';

/** Returns the reader of an answer that streams. */
export function itemReader(
  form: 'sse' | 'ndjson' | 'chunks',
  { maxItemBytes }: AnswerLimits,
  pass: (frame: ItemsFrame) => void,
): BodyReader {
  if (form === 'chunks') return new TextPieces(pass);
  const frames = new ItemFrames(pass);
  return form === 'sse' ? new SseItems(frames, maxItemBytes) : new NdjsonItems(frames, maxItemBytes);
}

/** Reads an answer that is the run's whole result. */
export class WholeBody implements BodyReader {
  readonly #chunks: Buffer[] = [];
  readonly #limit: number;
  #bytes = 0;

  constructor({ maxOutputBytes }: AnswerLimits) {
    this.#limit = maxOutputBytes;
  }

  push(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#limit)
      throw new ServiceError('output_too_large', `The output is over ${this.#limit} bytes.`);
    this.#chunks.push(chunk);
  }

  end(): void {}

  get bytes(): Buffer {
    return this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
  }
}

/** Whether an answer of this form is a stream of items. */
export const streams = (form: AnswerForm): form is 'sse' | 'ndjson' | 'chunks' =>
  form === 'sse' || form === 'ndjson' || form === 'chunks';
