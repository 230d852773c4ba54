// Contract 3 and WHATWG HTML §9.2 "Server-sent events": encodes items as events. Pure. A batch takes one pass, whatever the number of items.
import type { ItemBatch, RunId } from '@inference-proxy/contracts';

/** Readers end a line at a CR, even without an LF. */
export const CR = 0x0d;
const NEWLINE = 0x0a;
const QUOTE = 0x22;
export const LINE_END = /\r\n|\r|\n/;
export const LINE_ENDS = /\r\n|\r|\n/g;
/** A field of the standard, or a comment. */
const SSE_LINE = /^(?:(?:data|event|id|retry)(?:[:\r\n]|$)|:)/;

/** The comment of a quiet stream, which no reader shows. */
export const keepAliveComment = Buffer.from(': keep-alive\n\n');

/**
 * Returns a batch as events: for each item, `data: <text>` and a blank line.
 *
 * Bytes are read as Latin-1 characters and written back as Latin-1. UTF-8 has no newline inside a character, so this is safe.
 * Nothing is decoded, and the strings keep one byte a character.
 * @param preformatted whether an item that is already whole events is sent unchanged
 */
export function encodeItems(batch: ItemBatch, preformatted: boolean): Buffer {
  const text = plainText(batch);
  // A reader ends a line at a lone CR. The harness, which joined these items, does not.
  if (batch.kind === 'm' || batch.blob.includes(CR)) {
    const events = itemTexts(batch, text).map((item) => event(item, preformatted));
    return Buffer.from(events.join(''), 'latin1');
  }
  return Buffer.from(`data: ${text.replaceAll('\n', '\n\ndata: ')}\n\n`, 'latin1');
}

/** Returns a batch's bytes as Latin-1 characters. */
export const plainText = (batch: ItemBatch): string => batch.blob.toString('latin1');

/** Returns the items of a batch. @param text the batch as `plainText` returns it */
export const itemTexts = (batch: ItemBatch, text: string): string[] => (batch.kind === 'm' ? [text] : text.split('\n'));

/** Returns a plain value as the one item of its stream: a string as its text, any other value as its JSON text. */
export function batchOfResult(json: Buffer): ItemBatch {
  // The JSON of a custom runtime may have several lines.
  if (json[0] !== QUOTE) return { first: 1, count: 1, kind: json.includes(NEWLINE) ? 'm' : 'j', blob: json };
  const text = JSON.parse(json.toString()) as string;
  return { first: 1, count: 1, kind: 'm', blob: Buffer.from(text) };
}

/**
 * Returns an event of the service.
 *
 * @param id absent in a plain stream
 */
export function encodeEvent(name: string, data: object, id?: number): Buffer {
  const number = id === undefined ? '' : `id: ${id}\n`;
  return Buffer.from(`${number}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Returns the data of the last event of a stream that failed after its first byte. */
export const errorData = (runId: RunId, error: object): object => ({ run_id: runId, error });

function event(text: string, preformatted: boolean): string {
  if (preformatted && isEvents(text)) return text;
  return `data: ${text.replace(LINE_ENDS, '\ndata: ')}\n\n`;
}

/**
 * Returns whether a text is one or more whole events. Every line is a field or a comment, and a blank line is at the end.
 * Every event has a `data:` line. Comments between two blank lines are no event and need no `data:` line.
 */
export function isEvents(text: string): boolean {
  if (!text.includes('data:') || !SSE_LINE.test(text)) return false;
  const lines = text.split(LINE_END);
  if (lines.pop() !== '' || lines.at(-1) !== '') return false;
  let fields = 0;
  let hasData = false;
  let events = 0;
  for (const line of lines) {
    if (line === '') {
      if (fields > 0 && !hasData) return false;
      if (hasData) events += 1;
      fields = 0;
      hasData = false;
    } else if (!SSE_LINE.test(line)) return false;
    else if (!line.startsWith(':')) {
      fields += 1;
      hasData ||= line.startsWith('data:');
    }
  }
  return events > 0;
}
