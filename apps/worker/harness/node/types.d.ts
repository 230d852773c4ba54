// PROTOCOL.md: the types of the harness in JavaScript.

/** A message of the worker. The kind `t` decides which fields are present. */
export interface WorkerMessage {
  readonly t: 'init' | 'run' | 'credit' | 'cancel' | 'drain';
  /** The length of the blob. */
  readonly b?: number;
  // init
  readonly app: string;
  readonly entry: string;
  readonly concurrency: number;
  readonly max_item_bytes: number;
  readonly max_output_bytes: number;
  readonly max_log_bytes: number;
  readonly debug: boolean;
  readonly validate?: boolean;
  // run, credit, cancel
  readonly r: string;
  readonly f: string;
  readonly paced: boolean;
  readonly tp?: string;
  readonly n: number;
}

/** The limits of `init` in bytes. */
export interface Limits {
  readonly item: number;
  /** A result, or all items of a run without pacing. */
  readonly output: number;
  /** The printed lines of a run that are not sent yet. */
  readonly log: number;
}

/** The second argument of a function. */
export interface Context {
  readonly signal: AbortSignal;
  readonly runId: string;
  readonly traceparent: string | undefined;
  /** Prints a line into the log of the run, whatever code calls it. */
  readonly log: (...values: unknown[]) => void;
}

export interface AppFunction {
  (parameters: Record<string, unknown>, context: Context): unknown;
  /** The types of the parameters, as the app declares them. */
  readonly schema?: unknown;
}

/** The types of a TypeScript function in its source, as harness/types prints them. */
export interface FunctionTypes {
  readonly kind?: 'value' | 'stream';
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: object;
  readonly returns?: object;
  readonly item?: object;
  /** Why there are no types. */
  readonly untyped?: string;
  readonly functions?: Readonly<Record<string, FunctionTypes>>;
}

/** The types of an app's functions, or the reason why they are unknown. */
export type AppTypes = Pick<FunctionTypes, 'functions' | 'untyped'>;

/** The items of a stream, one at a time. */
export interface ItemSource {
  /** Whether every `next()` settles after `stop`. */
  readonly settles: boolean;
  /** Whether the items are pieces of a body. */
  readonly isBytes?: boolean;
  next(): unknown;
  /** Ends the source early. Runs its `finally` blocks. */
  stop(reason: unknown): unknown;
}

/** The head of an answer that is a body. */
export interface Head {
  readonly status: number;
  readonly media?: string;
  /** The `AnswerForm` of packages/contracts/src/http-exchange.ts. */
  readonly form: 'sse' | 'ndjson' | 'chunks' | 'bytes' | 'json' | 'text' | 'binary';
}

/** Fields of an `error` message. */
export interface ErrorFields {
  readonly code: string;
  readonly message: string;
  readonly type?: string;
  readonly details?: readonly Detail[];
  readonly status?: number;
  readonly retry_after?: string;
  readonly traceback?: string;
}

/** One wrong parameter. */
export interface Detail {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

/** A parameter in `ready`. */
export interface Parameter {
  readonly name: string;
  readonly required: boolean;
  readonly default?: unknown;
  readonly annotation?: string;
}

/** A function in `ready`. */
export interface Description {
  readonly name: string;
  readonly doc?: string;
  readonly parameters: readonly Parameter[];
  readonly extra: boolean;
  /** The `FunctionSchema` of packages/contracts/src/functions.ts. */
  readonly schema?: object;
  /** Why there is no schema. */
  readonly untyped?: string | undefined;
}

/** The parameters of a call. */
export type Parameters = Record<string, unknown>;

/** A problem that a Standard Schema reports. zod's issues also have `code` and `keys`. */
export interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[];
  readonly code?: string;
  readonly keys?: readonly string[];
}
