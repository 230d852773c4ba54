// Contract 3 and 5, and WHATWG HTML §9.2 "Server-sent events": encodes items and states of a run as events, and numbers them. Pure.
// A batch takes one pass, whatever the number of items.
import type { ItemBatch, Outcome, RunId, RunState } from '@inference-proxy/contracts';
import { isoTime } from '../http/values.ts';
import type { StreamForm } from './stream-form.ts';

/** Readers end a line at a CR, even without an LF. */
export const CR = 0x0d;
const NEWLINE = 0x0a;
const QUOTE = 0x22;
export const LINE_END = /\r\n|\r|\n/;
const LINE_ENDS = /\r\n|\r|\n/g;
/** A field of the standard, or a comment. */
const SSE_LINE = /^(?:(?:data|event|id|retry)(?:[:\r\n]|$)|:)/;
const ID_LINE = /^id(?::|$)/;
const NAME_LINE = /^event(?::|$)/;
/** Time after which an EventSource connects again, ms. */
const RETRY_MS = 1000;

/** The comment of an idle stream, which no reader shows. */
export const keepAliveComment = Buffer.from(': keep-alive\n\n');

interface Encoded {
  readonly form: StreamForm;
  readonly preformatted: boolean;
  readonly events: Buffer;
}

/** By batch: the form that was asked for last. The readers of a run get the same batch one after the other, and mostly in one form. */
const encoded = new WeakMap<ItemBatch, Encoded>();

/** Returns a batch as the events of a form. All callers share the bytes, which must not be changed. */
export function encodedItems(batch: ItemBatch, form: StreamForm, preformatted: boolean): Buffer {
  const known = encoded.get(batch);
  if (known?.form === form && known.preformatted === preformatted) return known.events;
  const events =
    form === 'plain'
      ? encodeItems(batch, preformatted)
      : encodeNumbered(batch, preformatted, form === 'rich' ? 'item' : '');
  encoded.set(batch, { form, preformatted, events });
  return events;
}

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

/** Returns a batch's bytes as Latin-1 characters, and pieces of a body in base64. */
const plainText = ({ kind, blob }: ItemBatch): string => blob.toString(kind === 'b' ? 'base64' : 'latin1');

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

/**
 * Returns a batch as events with `id: <number>`.
 *
 * @param preformatted whether a ready-made item keeps its events. The last event gets the number, and ids in the text are dropped
 * @param name of every event, instead of names in ready-made text. Empty: events get no name, and names in ready-made text stay
 */
export function encodeNumbered(batch: ItemBatch, preformatted: boolean, name: string): Buffer {
  const text = plainText(batch);
  const named = name === '' ? '' : `event: ${name}\n`;
  let events = '';
  let id = batch.first;
  if (batch.kind !== 'm' && !batch.blob.includes(CR)) {
    for (const item of text.split('\n')) events += `id: ${id++}\n${named}data: ${item}\n\n`;
  } else {
    for (const item of itemTexts(batch, text)) {
      events +=
        preformatted && isEvents(item)
          ? numberedEvents(item, id, named)
          : `id: ${id}\n${named}data: ${item.replace(LINE_ENDS, '\ndata: ')}\n\n`;
      id += 1;
    }
  }
  return Buffer.from(events, 'latin1');
}

/**
 * Numbers the last event of an item, so that a reader with this number has the whole item.
 *
 * In named streams, an event name from the function could forge `done` or `error`. There `named` replaces such names.
 */
function numberedEvents(text: string, id: number, named: string): string {
  const blocks: string[][] = [[]];
  for (const line of text.split(LINE_END)) {
    if (line === '') blocks.push([]);
    else if (!ID_LINE.test(line) && (named === '' || !NAME_LINE.test(line))) blocks.at(-1)?.push(line);
  }
  const last = blocks.findLastIndex(isEvent);
  return blocks
    .map((lines, at) => {
      if (lines.length === 0) return '';
      const number = at === last ? `id: ${id}\n` : '';
      return `${number}${isEvent(lines) ? named : ''}${lines.join('\n')}\n\n`;
    })
    .join('');
}

const isEvent = (lines: readonly string[]): boolean => lines.some((line) => line.startsWith('data:'));

/** Returns the first lines of a stream with ids. With them, a client that loses the connection before the first event can resume. */
export const openingLines = (after: number): Buffer => Buffer.from(`retry: ${RETRY_MS}\nid: ${after}\n\n`);

/** Returns the data of `started`. @param at Unix ms */
export const startedData = (runId: RunId, at: number): object => ({ run_id: runId, started_at: isoTime(at) });

/** Returns the data of `done`: the envelope without the items. */
export const doneData = (runId: RunId, { state, runTimeMs, endedAt }: Outcome): object => ({
  run_id: runId,
  status: state,
  run_time_ms: Number(runTimeMs),
  timestamp: isoTime(endedAt),
});

/** Returns the data of `log`, for rich streams and for log streams. @param line `at` is Unix ms */
export const logData = ({ at, stream, text }: { at: number; stream: string; text: string }): object => ({
  stream,
  time: isoTime(at),
  text,
});

/** The fields that decide the number. An `Outcome` has them too. */
export interface EndedRun {
  readonly state: RunState;
  readonly items: number;
  readonly streamed: boolean;
}

/**
 * Returns the number of the last event. Items are numbered from 1, and so is the one event of a plain value.
 * A failure has the number after the last item, so that a reader without it gets it, and a reader with it does not.
 * In the rich stream, a failure repeats the number of the last item, like every event
 * that is not an item (contract 3).
 */
export function lastEventOf({ state, items, streamed }: EndedRun, form: StreamForm): number {
  if (state !== 'succeeded') return form === 'rich' ? items : items + 1;
  return streamed ? items : 1;
}

/**
 * Returns whether the run has ended and has no event after the reader's last event.
 *
 * @param after absent: the reader starts with the run, and in the rich form also wants the events that are not items
 */
export function nothingFollows(run: EndedRun, after: number | undefined, form: StreamForm): boolean {
  if (run.state === 'queued' || run.state === 'running') return false;
  if (after === undefined && form === 'rich') return false;
  return (after ?? 0) >= lastEventOf(run, form);
}
