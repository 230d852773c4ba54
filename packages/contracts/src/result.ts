// Contract 2: the `result` of an envelope. Raw JSON text is spliced, never parsed: integers past 2^53 and `1.0` stay as the function wrote them.
import { isUtf8 } from 'node:buffer';
import { type AnswerHead, headerOf } from './http-exchange.ts';
import type { ItemBatch, Outcome } from './runs.ts';

const NEWLINE = 0x0a;
const COMMA = 0x2c;
const NULL = Buffer.from('null');

/** Returns one batch as the inside of a JSON array: JSON texts unchanged, strings quoted. */
export function arrayBody(batch: ItemBatch): Buffer {
  if (batch.kind === 'b') return quoted(batch.blob.toString('base64'));
  if (batch.kind === 'm') return Buffer.from(JSON.stringify(batch.blob.toString()));
  if (batch.kind === 's') {
    const quoted = batch.blob
      .toString()
      .split('\n')
      .map((item) => JSON.stringify(item));
    return Buffer.from(quoted.join(','));
  }
  const body = Buffer.from(batch.blob);
  for (let at = body.indexOf(NEWLINE); at !== -1; at = body.indexOf(NEWLINE, at + 1)) body[at] = COMMA;
  return body;
}

/** Returns the items as a JSON array, in order. */
export function itemsAsJson(batches: readonly ItemBatch[]): Buffer {
  const parts: Buffer[] = [];
  for (const batch of batches) parts.push(Buffer.from(parts.length === 0 ? '[' : ','), arrayBody(batch));
  parts.push(Buffer.from(parts.length === 0 ? '[]' : ']'));
  return Buffer.concat(parts);
}

/** Returns the joined bytes of the items: for `chunks` and `bytes`, the original body. */
export function piecesOf(batches: readonly ItemBatch[]): Buffer {
  return Buffer.concat(
    batches.flatMap(({ count, blob }) =>
      count === 1 ? [blob] : [Buffer.from(blob.toString('latin1').replaceAll('\n', ''), 'latin1')],
    ),
  );
}

/**
 * Returns a run's result as JSON text: the return value of a function, the list of its items, or the body of a custom runtime's answer.
 *
 * @param outcome of a run that succeeded
 * @param batches all items of a streamed run
 */
export function resultAsJson({ streamed, result, head }: Outcome, batches: readonly ItemBatch[]): Buffer {
  if (streamed && head?.form === 'bytes') return quoted(piecesOf(batches).toString('base64'));
  if (streamed) return head?.form === 'chunks' ? quoted(piecesOf(batches).toString()) : itemsAsJson(batches);
  return head ? bodyAsJson(head, result) : (result ?? NULL);
}

/** Returns JSON if the head says JSON and the body is valid, text as a string, any other body in base64, and `null` without a body. */
function bodyAsJson({ form, headers }: AnswerHead, body: Buffer | undefined): Buffer {
  if (body === undefined || body.length === 0) return NULL;
  if (form === 'binary') return quoted(body.toString('base64'));
  if (form === 'json' && isJson(body)) return body;
  return quoted(decoded(body, headerOf(headers, 'content-type')));
}

const quoted = (text: string): Buffer => Buffer.from(JSON.stringify(text));

function isJson(body: Buffer): boolean {
  if (!isUtf8(body)) return false;
  try {
    JSON.parse(body.toString());
    return true;
  } catch {
    return false;
  }
}

/** Decodes text by the charset of the content type. An unknown charset is read as UTF-8. */
function decoded(body: Buffer, contentType = ''): string {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1];
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    return body.toString();
  }
}
