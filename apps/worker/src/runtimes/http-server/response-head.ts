// Contract 1, "Custom runtimes": the head of a server's answer as callers receive it, and the form of its body (`AnswerForm`).
import type { IncomingMessage } from 'node:http';
import { type AnswerForm, type AnswerHead, encodeHead, type HeaderPair, headerOf } from '@inference-proxy/contracts';

/** Headers about one connection (RFC 9110 §7.6.1). The gateway sets the run's id itself. */
const NOT_PASSED = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'x-request-id'],
]);
const NDJSON = new Set(['application/x-ndjson', 'application/ndjson', 'application/jsonl', 'application/x-jsonlines']);
const TEXT = new Set(['application/xml', 'application/javascript', 'application/x-www-form-urlencoded']);
const UTF8 = new Set(['utf-8', 'utf8', 'us-ascii', 'ascii']);

/** Whether an answer has no body, whatever its headers say (RFC 9110 §6.4.1). */
export const hasNoBody = (method: string, status: number): boolean =>
  method === 'HEAD' || status === 204 || status === 205 || status === 304;

/** @throws ServiceError `upstream_reset` if the head could not be passed on (`encodeHead`) */
export function headOf(method: string, answer: IncomingMessage): AnswerHead {
  const { statusCode: status = 0, rawHeaders } = answer;
  const pairs: HeaderPair[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2)
    pairs.push([rawHeaders[at] as string, rawHeaders[at + 1] as string]);
  const named = new Set<string>();
  for (const [name, value] of pairs)
    if (name.toLowerCase() === 'connection') for (const each of value.split(',')) named.add(each.trim().toLowerCase());
  const bodiless = hasNoBody(method, status);
  // The sender of a body sets its length anew. An answer without a body keeps the length, because it has a meaning there.
  const keepsLength = method === 'HEAD' || status === 304;
  const headers = pairs.filter(([raw]) => {
    const name = raw.toLowerCase();
    return !NOT_PASSED.has(name) && !named.has(name) && (keepsLength || name !== 'content-length');
  });
  const head = { status, headers, form: formOf(headers, bodiless, headerOf(pairs, 'content-length') !== undefined) };
  encodeHead(head);
  return head;
}

/** Returns the form by the answer's content type, whatever the caller accepts. */
function formOf(headers: readonly HeaderPair[], bodiless: boolean, hasLength: boolean): AnswerForm {
  const [type = '', ...parameters] = (headerOf(headers, 'content-type') ?? '').toLowerCase().split(';');
  const essence = type.trim();
  const coding = headerOf(headers, 'content-encoding') ?? 'identity';
  // The request allows no coding. A compressed answer is passed on as unchanged bytes.
  if (coding.trim().toLowerCase() !== 'identity') return 'binary';
  if (!bodiless && essence === 'text/event-stream') return 'sse';
  if (!bodiless && NDJSON.has(essence)) return 'ndjson';
  if (essence === 'application/json' || essence.endsWith('+json')) return 'json';
  if (!essence.startsWith('text/'))
    return TEXT.has(essence) || essence.endsWith('+xml') || NDJSON.has(essence) ? 'text' : 'binary';
  return !bodiless && !hasLength && UTF8.has(charsetOf(parameters)) ? 'chunks' : 'text';
}

function charsetOf(parameters: readonly string[]): string {
  for (const parameter of parameters) {
    const [name, value = ''] = parameter.split('=');
    if (name?.trim() === 'charset') return value.trim().replaceAll('"', '');
  }
  return 'utf-8';
}
