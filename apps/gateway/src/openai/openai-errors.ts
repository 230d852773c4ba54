// Contract 2, "Errors": an error as OpenAI's clients parse it.
import type { OutgoingHttpHeaders } from 'node:http';
import { type ErrorCode, type ErrorFields, errorKinds, errorObject, isRetryable } from '@inference-proxy/contracts';
import { isOpenAiPath } from './openai-path.ts';

const TYPES: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  overloaded: 'rate_limit_error',
};
const FIRST_SERVER_ERROR = 500;

/** The `error` object with `type` (the exception's class where a function raised) and `param` (the first parameter that was refused). */
export function openAiError(fields: ErrorFields): Record<string, unknown> {
  const refused = fields.details?.[0]?.loc.at(-1);
  return {
    ...errorObject(fields),
    type: fields.type ?? typeOf(fields.code),
    param: refused === undefined ? null : String(refused),
  };
}

/**
 * The header that decides whether OpenAI's clients call again; none on other paths. Without the header these clients repeat every
 * answer of 500 and more, so they run a failing function again.
 */
export function shouldRetry(url: string | undefined, fields: ErrorFields): OutgoingHttpHeaders | undefined {
  return isOpenAiPath(url) ? { 'x-should-retry': String(isRetryable(fields)) } : undefined;
}

const typeOf = (code: ErrorCode): string =>
  TYPES[code] ?? (errorKinds[code].status >= FIRST_SERVER_ERROR ? 'server_error' : 'invalid_request_error');
