// Contract 1, "OpenAI clients", and 2, "Errors": recognizes the paths of OpenAI clients, and formats an error for these clients.
import type { OutgoingHttpHeaders } from 'node:http';
import { type ErrorCode, type ErrorFields, errorKinds, errorObject, isRetryable } from '@inference-proxy/contracts';
import { pathForms } from './path-form.ts';

const hasOpenAiForm = pathForms(
  '/v4/*/*/*/chat/completions',
  '/v4/*/*/*/completions',
  '/v4/*/*/*/embeddings',
  '/v4/*/*/*/responses',
  '/v4/*/*/*/models',
  '/v4/*/*/*/models/*',
);

export const isOpenAiPath = (url = ''): boolean => hasOpenAiForm(url);

const TYPES: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  overloaded: 'rate_limit_error',
};
const FIRST_SERVER_ERROR = 500;

/**
 * Returns the `error` object with `type` and `param`.
 * `type` is the exception's class if the function raised an exception. `param` is the first rejected parameter.
 */
export function openAiError(fields: ErrorFields): Record<string, unknown> {
  const refused = fields.details?.[0]?.loc.at(-1);
  return {
    ...errorObject(fields),
    type: fields.type ?? typeOf(fields.code),
    param: refused === undefined ? null : String(refused),
  };
}

/**
 * Returns the header that decides whether OpenAI clients repeat a call, or undefined on other paths.
 * Without the header, these clients repeat every call whose answer is 500 or more. They would run a failing function again.
 */
export function shouldRetry(url: string | undefined, fields: ErrorFields): OutgoingHttpHeaders | undefined {
  return isOpenAiPath(url) ? { 'x-should-retry': String(isRetryable(fields)) } : undefined;
}

const typeOf = (code: ErrorCode): string =>
  TYPES[code] ?? (errorKinds[code].status >= FIRST_SERVER_ERROR ? 'server_error' : 'invalid_request_error');
