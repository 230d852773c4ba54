// Contract 1, "OpenAI clients": the form of calls and answers on the OpenAI paths.
import { envelope, errorStatus, type Outcome, type RunId } from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import type { CallProtocol, ReadApp, ReadCall } from '../calls/call-protocol.ts';
import { type CallRequest, type CheckedBody, callRequest, parametersOf } from '../calls/call-request.ts';
import type { EnvelopeAnswer } from '../calls/outcome.ts';
import { retryAfter } from '../http/answer.ts';
import { openAiError } from '../http/openai-errors.ts';
import { resultBody } from '../http/stored-result.ts';
import { keepMembers } from './members.ts';
import { type CompletionKind, mergedCompletion } from './merged-completion.ts';

const NULL = Buffer.from('null');
const DONE = Buffer.from('data: [DONE]\n\n');
/** The longest `[DONE]` event that a function can send, with its blank line. */
const DONE_BYTES = 24;
const ENDS_DONE = /(?:^|[\r\n])data: ?\[DONE\](?:\r\n|\r|\n){2}$/;

export interface OpenAiTerms {
  /** All paths except `/responses` end a stream with `[DONE]`. */
  readonly endsByDone: boolean;
  /** The object that yielded chunks are merged into. Without it, the answer is the list of the items. */
  readonly merges?: CompletionKind;
}

export function openAiProtocol({ endsByDone, merges }: OpenAiTerms): CallProtocol {
  return {
    readHead: callRequest,
    checkBody: parametersOf,
    readBody: read,
    answer: (...run) => answer(merges, ...run),
    error: openAiError,
    ...(endsByDone && { closing }),
  };
}

/**
 * Reads the options of the body. `stream` in the body takes precedence over `Accept`.
 * Drops the parameters that the function does not take.
 */
function read(call: CallRequest, app: ReadApp, { bytes, value = {} }: CheckedBody): ReadCall {
  const { stream } = value as { stream?: unknown };
  const spec = app.functions.find(({ name }) => name === call.fn);
  const names = new Set(spec?.parameters.map(({ name }) => name));
  const takesAll = spec === undefined || spec.extra;
  const params = takesAll ? bytes : keepMembers(bytes, (name) => names.has(name));
  const kept = params === bytes ? value : Object.fromEntries(Object.entries(value).filter(([name]) => names.has(name)));
  return { call: { ...call, stream: stream === true }, params, value: kept };
}

/** Returns the bare result. A failure returns the envelope, with `type` and `param` in its error. */
async function answer(
  merges: CompletionKind | undefined,
  store: GatewayStore,
  project: string,
  runId: RunId,
  outcome: Outcome,
): Promise<EnvelopeAnswer> {
  const { error, streamed, items, statusCode = 200 } = outcome;
  if (error) {
    const body = envelope(runId, outcome, [], openAiError);
    return { status: errorStatus(error), body, headers: retryAfter(error) };
  }
  const merged = merges && streamed && items > 0 && (await mergedCompletion(await store.items(project, runId), merges));
  const body = merged || (await resultBody(store, project, runId, outcome)) || NULL;
  return { status: statusCode, body, headers: undefined };
}

const closing = (lastEvent: Buffer): Buffer | undefined =>
  ENDS_DONE.test(lastEvent.subarray(-DONE_BYTES).toString('latin1')) ? undefined : DONE;
