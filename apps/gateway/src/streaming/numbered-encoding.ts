// Contract 3 and 5 (`ids`, `events=full`): encodes items as events with numbers, for resuming. Pure.
import type { ItemBatch } from '@inference-proxy/contracts';
import { CR, isEvents, itemTexts, LINE_END, LINE_ENDS, plainText } from './sse-encoding.ts';

const ID_LINE = /^id(?::|$)/;
const NAME_LINE = /^event(?::|$)/;

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
