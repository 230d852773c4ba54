// Contract 2: every error of the service, in one closed table.

/** What a code means to a caller: its HTTP status, and whether the same call may succeed when tried again. */
interface ErrorKind {
  readonly status: number;
  readonly retryable: boolean;
  /** Seconds for `Retry-After`, where the contract asks for that header. */
  readonly retryAfterS?: number;
}

/** The closed table of contract 2. The documents and every service's answers follow it; nothing else invents a code. */
export const errorKinds = {
  unauthorized: { status: 401, retryable: false },
  forbidden: { status: 403, retryable: false },
  not_found: { status: 404, retryable: false },
  method_not_allowed: { status: 405, retryable: false },
  invalid_request: { status: 400, retryable: false },
  unsupported_media_type: { status: 415, retryable: false },
  payload_too_large: { status: 413, retryable: false },
  invalid_input: { status: 422, retryable: false },
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

/** One reason of an `invalid_input`: where, what, and which rule. */
export interface ErrorDetail {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

/** The `error` object of contract 2, without `retryable`, which follows from the code. */
export interface ErrorFields {
  readonly code: ErrorCode;
  readonly message: string;
  /** Exception class, where the function raised. */
  readonly type?: string;
  readonly details?: readonly ErrorDetail[];
  /** Only where the app sets `debug = true`. */
  readonly traceback?: string;
}

/** The one error class: thrown anywhere between a request and its answer, turned into contract 2's shape in one place. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly details: readonly ErrorDetail[] | undefined;
  /** Exception class of a function that raised. */
  readonly type: string | undefined;
  /** Set where a run exists (or, for `unavailable`, may exist). */
  readonly runId: string | undefined;
  /** Seconds for `Retry-After`, where more is known than the code says. */
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
    retryable: errorKinds[error.code].retryable,
    ...(error.type !== undefined && { type: error.type }),
    ...(error.details !== undefined && { details: error.details }),
    ...(error.traceback !== undefined && { traceback: error.traceback }),
  };
}
