import type { ItemBatch } from '@inference-proxy/contracts';
import { expect, test } from '@jest/globals';
import { encodedItems } from './events.ts';

const batch: ItemBatch = { first: 7, count: 1, kind: 's', blob: Buffer.from('data: x\r\r') };

test('many readers of a batch share its events, and each form has its own events', () => {
  for (const [form, preformatted, text] of [
    ['plain', true, 'data: x\r\r'],
    ['plain', false, 'data: data: x\ndata: \ndata: \n\n'],
    ['ids', true, 'id: 7\ndata: x\n\n'],
    ['rich', true, 'id: 7\nevent: item\ndata: x\n\n'],
    ['plain', true, 'data: x\r\r'],
  ] as const) {
    const events = encodedItems(batch, form, preformatted);
    expect(events.toString()).toBe(text);
    expect(encodedItems(batch, form, preformatted)).toBe(events);
  }
});
