// Contract 5: any number of readers. A batch for many readers is encoded once.
import type { ItemBatch } from '@inference-proxy/contracts';
import { encodeNumbered } from './numbered-encoding.ts';
import { encodeItems } from './sse-encoding.ts';
import type { StreamForm } from './stream-form.ts';

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
      : encodeNumbered(batch, preformatted, form === 'full' ? 'item' : '');
  encoded.set(batch, { form, preformatted, events });
  return events;
}
