// Contract 2: every error of the service, in one closed table.

/** The meaning of a code for a caller: its HTTP status, and whether a retry of the same call may succeed. */
interface ErrorKind {
  readonly status: number;
  readonly retryable: boolean;
  /** Seconds for `Retry-After`, if the contract requires this header. */
  readonly retryAfterS?: number;
}

/** The closed table of contract 2. Documents and services use these codes only. */
export const errorKinds = {
  unauthorized: { status: 401, retryable: false },
  forbidden: { status: 403, retryable: false },
  not_found: { status: 404, retryable: false },
  method_not_allowed: { status: 405, retryable: false },
  invalid_request: { status: 400, retryable: false },
  unsupported_media_type: { status: 415, retryable: false },
  payload_too_large: { status: 413, retryable: false },
  invalid_input: { status: 422, retryable: false },
  invalid_bundle: { status: 422, retryable: false },
  conflict: { status: 409, retryable: false },
  idempotency_conflict: { status: 422, retryable: false },
  items_gone: { status: 410, retryable: false },
  not_implemented: { status: 501, retryable: false },
  overloaded: { status: 429, retryable: true, retryAfterS: 1 },
  function_error: { status: 500, retryable: false },
  unserializable_output: { status: 500, retryable: false },
  output_too_large: { status: 500, retryable: false },
  out_of_memory: { status: 500, retryable: false },
  replica_crashed: { status: 502, retryable: true },
  worker_lost: { status: 502, retryable: true },
  upstream_unavailable: { status: 502, retryable: true },
  upstream_reset: { status: 502, retryable: true },
  app_failed_to_start: { status: 503, retryable: true, retryAfterS: 5 },
  unavailable: { status: 503, retryable: true, retryAfterS: 2 },
  timed_out: { status: 504, retryable: true },
  expired: { status: 504, retryable: true },
  cancelled: { status: 499, retryable: false },
  internal: { status: 500, retryable: true },
} as const satisfies Record<string, ErrorKind>;

/** A stable error code; a caller's `switch` over it is exhaustive. */
export type ErrorCode = keyof typeof errorKinds;

/** A violation that an `invalid_input` reports: position, message and rule. */
export interface ErrorDetail {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

/** The `error` object of contract 2 without `retryable`, because the code determines `retryable`. */
export interface ErrorFields {
  readonly code: ErrorCode;
  readonly message: string;
  /** Class of the exception, if the function raised one. */
  readonly type?: string;
  readonly details?: readonly ErrorDetail[];
  /** HTTP status, if the exception of a function has one. */
  readonly status?: number;
  /** Value of `Retry-After`, if the exception of a function has one: seconds or an HTTP date. */
  readonly retryAfter?: string;
  /** Present only if the app sets `debug = true`. */
  readonly traceback?: string;
}

/** Statuses of an exception after which the same call may succeed. Their answers carry `Retry-After`. */
const RETRYABLE_STATUSES: ReadonlySet<number | undefined> = new Set([429, 503]);

/** Returns the HTTP status of an answer with this error. */
export const errorStatus = ({ code, status }: Pick<ErrorFields, 'code' | 'status'>): number =>
  status ?? errorKinds[code].status;

/** Returns whether the same call may succeed on a later try. */
export const isRetryable = ({ code, status }: Pick<ErrorFields, 'code' | 'status'>): boolean =>
  errorKinds[code].retryable || RETRYABLE_STATUSES.has(status);

/** Returns the value of `Retry-After` for an answer with this error, or undefined for an answer without the header. */
export function retryAfterOf(error: Pick<ErrorFields, 'code' | 'status' | 'retryAfter'>): string | undefined {
  if (RETRYABLE_STATUSES.has(error.status)) return error.retryAfter ?? '1';
  const kind = errorKinds[error.code];
  return 'retryAfterS' in kind ? String(kind.retryAfterS) : undefined;
}

/** The only error class. Code between a request and its answer throws it, and one place converts it to contract 2's form. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly details: readonly ErrorDetail[] | undefined;
  /** Exception class of a function that raised. */
  readonly type: string | undefined;
  /** Set if a run exists, or if it may exist (`unavailable`). */
  readonly runId: string | undefined;
  /** Seconds for `Retry-After`, if a better value than the table's is known. */
  readonly retryAfterS: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    more: {
      details?: readonly ErrorDetail[];
      type?: string;
      runId?: string;
      retryAfterS?: number;
      cause?: unknown;
    } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = 'ServiceError';
    this.code = code;
    this.details = more.details;
    this.type = more.type;
    this.runId = more.runId;
    this.retryAfterS = more.retryAfterS;
  }

  get status(): number {
    return errorKinds[this.code].status;
  }
}

/** `{"code", "message", "retryable", "type"?, "details"?}` of contract 2. */
export function errorObject(error: ErrorFields): Record<string, unknown> {
  return {
    code: error.code,
    message: error.message,
    retryable: isRetryable(error),
    ...(error.type !== undefined && { type: error.type }),
    ...(error.details !== undefined && { details: error.details }),
    ...(error.traceback !== undefined && { traceback: error.traceback }),
  };
}
