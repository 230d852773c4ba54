// Contract 3 and WHATWG HTML §9.2 "Server-sent events": items as events. Pure, and one pass per batch, not per item.
import type { ItemBatch, RunId } from '@inference-proxy/contracts';

/** Ends a line for a reader, alone too. */
export const CR = 0x0d;
const NEWLINE = 0x0a;
const QUOTE = 0x22;
export const LINE_END = /\r\n|\r|\n/;
export const LINE_ENDS = /\r\n|\r|\n/g;
/** A field that the standard knows, or a comment. */
const SSE_LINE = /^(?:(?:data|event|id|retry)(?:[:\r\n]|$)|:)/;

/** What a quiet stream carries: a comment, which no reader shows. */
export const keepAliveComment = Buffer.from(': keep-alive\n\n');

/**
 * A batch as events, `data: <text>` and a blank line each.
 *
 * Bytes are taken as Latin-1 characters and written back as such: UTF-8 never has a newline inside a character, so nothing is decoded,
 * and the strings stay one byte a character.
 * @param preformatted whether an item that already is whole events goes through as it is
 */
export function encodeItems(batch: ItemBatch, preformatted: boolean): Buffer {
  const text = plainText(batch);
  // A lone CR ends a line for a reader, though not for the harness that joined these items.
  if (batch.kind === 'm' || batch.blob.includes(CR)) {
    const events = itemTexts(batch, text).map((item) => event(item, preformatted));
    return Buffer.from(events.join(''), 'latin1');
  }
  return Buffer.from(`data: ${text.replaceAll('\n', '\n\ndata: ')}\n\n`, 'latin1');
}

/** A batch's bytes as Latin-1 characters. */
export const plainText = (batch: ItemBatch): string => batch.blob.toString('latin1');

/** @param text the batch's, as `plainText` gives it */
export const itemTexts = (batch: ItemBatch, text: string): string[] => (batch.kind === 'm' ? [text] : text.split('\n'));

/** A plain value as the one item of its stream: a string as its text, anything else as the JSON text that it is. */
export function batchOfResult(json: Buffer): ItemBatch {
  // A server's own JSON may have lines.
  if (json[0] !== QUOTE) return { first: 1, count: 1, kind: json.includes(NEWLINE) ? 'm' : 'j', blob: json };
  const text = JSON.parse(json.toString()) as string;
  return { first: 1, count: 1, kind: 'm', blob: Buffer.from(text) };
}

/**
 * An event of our own.
 *
 * @param id absent in a plain stream
 */
export function encodeEvent(name: string, data: object, id?: number): Buffer {
  const number = id === undefined ? '' : `id: ${id}\n`;
  return Buffer.from(`${number}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** What the last event of a stream that failed after its first byte says. */
export const errorData = (runId: RunId, error: object): object => ({ run_id: runId, error });

function event(text: string, preformatted: boolean): string {
  if (preformatted && isEvents(text)) return text;
  return `data: ${text.replace(LINE_ENDS, '\ndata: ')}\n\n`;
}

/**
 * One or more whole events: every line a field or a comment, every event with a `data:` line, a blank line at the end. Comments between
 * two blank lines are no event and need none.
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
