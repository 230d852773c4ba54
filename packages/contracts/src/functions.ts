// The announcement of an app: workers send it, gateways route by it (contract 1: `GET /v4/{project}`).
import type { ErrorFields } from './errors.ts';

/** One parameter of a function, from its signature. */
export interface ParameterSpec {
  readonly name: string;
  readonly required: boolean;
  /** The default as a JSON value, if JSON can represent it. */
  readonly default?: unknown;
  /** The annotation as its author wrote it. */
  readonly annotation?: string;
}

/** A JSON Schema, draft 2020-12. Self-contained: each `$ref` is local (`#/$defs/Name` of the same schema). */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** What a public function takes and gives. Made by the function's process, once per version. */
export interface FunctionSchema {
  /** `stream`: a generator, or annotated `Iterator[T]`, `Generator[T, …]`, `AsyncIterator[T]`, … */
  readonly kind: 'value' | 'stream';
  /** First paragraph of the docstring, one line. */
  readonly summary?: string;
  /** Rest of the docstring without its sections for parameters and results. */
  readonly description?: string;
  /** The body: `type: object`. Parameter descriptions and defaults are in `properties`. */
  readonly parameters: JsonSchema;
  /** Of the return value; for `kind: 'value'`, if the annotation is understood. */
  readonly returns?: JsonSchema;
  /** Of one item; for `kind: 'stream'`, if the annotation is understood. */
  readonly item?: JsonSchema;
}

/** One public function of an app. */
export interface FunctionSpec {
  readonly name: string;
  readonly doc?: string;
  readonly parameters: readonly ParameterSpec[];
  /** True if the function takes `**kwargs`. */
  readonly extra: boolean;
  /** Absent for an untyped function, and for apps whose runtime makes no schemas. */
  readonly schema?: FunctionSchema;
  /** Why the function is untyped: its schema could not be made or is too large. */
  readonly untyped?: string;
  /** Examples of its parameters, from `[examples]` of the manifest. */
  readonly examples?: readonly object[];
  /** The media type of the bytes that the function returns or yields. They are the body of its answer. */
  readonly media?: string;
}

export type AppState = 'starting' | 'ready' | 'broken';

/** A version of an app that did not start, and why. */
export interface FailedVersion {
  readonly version: string;
  readonly error: ErrorFields;
}

/** A line of output from the start of an app. */
export interface StartLine {
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
  /** When it was printed, Unix milliseconds. */
  readonly at: number;
}

/** The description of an app that a worker announces. */
export interface AppDescription {
  readonly app: string;
  /** `functions`: functions are called. `server`: any path below the app is forwarded (contract 1, "Custom runtimes"). */
  readonly kind: 'functions' | 'server';
  readonly state: AppState;
  /** A hash of the app's files. A change of code changes it. */
  readonly version: string;
  /** The code comes from deployed versions. Absent: from a folder. */
  readonly deployed?: boolean;
  /** Empty for custom runtimes, and before functions are loaded. */
  readonly functions: readonly FunctionSpec[];
  /** The reason why the app is broken. */
  readonly error?: ErrorFields;
  /** The last lines that a broken app printed while it started. */
  readonly startLog?: readonly StartLine[];
  /** Why an app that is starting waits, such as for its bundle. */
  readonly waiting?: string;
  /** The newest version, if that version failed to start while an older version serves. */
  readonly failed?: FailedVersion;
  /** The largest number of runs in the app's queue. */
  readonly queueLimit: number;
  /** The longest time of a run in the queue, milliseconds. */
  readonly queueTimeoutMs: number;
  /** Whether a yielded string of whole SSE events is sent unchanged (contract 3, `[streaming] preformatted`). */
  readonly preformatted: boolean;
  /** The app's own limit of a call's body, in bytes (`[scaling] max_body_bytes`). */
  readonly maxBodyBytes?: number;
  /** Whether the server receives the caller's `Authorization` (`[runtime.custom] forward_auth`). */
  readonly forwardAuth?: boolean;
}
