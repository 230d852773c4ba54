// What a worker announces of an app, and a gateway routes by (contract 1: `GET /v4/{project}`).
import type { ErrorFields } from './errors.ts';

/** One parameter of a function, from its signature. */
export interface ParameterSpec {
  readonly name: string;
  readonly required: boolean;
  /** The default's JSON value, where there is one that JSON can hold. */
  readonly default?: unknown;
  /** The annotation as the function's author wrote it. */
  readonly annotation?: string;
}

/** One public function of an app. */
export interface FunctionSpec {
  readonly name: string;
  readonly doc?: string;
  readonly parameters: readonly ParameterSpec[];
  /** True where the function takes `**kwargs`. */
  readonly extra: boolean;
}

export type AppState = 'starting' | 'ready' | 'broken';

/** One app of one project as its worker announces it. */
export interface AppDescription {
  readonly app: string;
  /** Whether its functions are called, or any path below it goes to a web server of its own (contract 1, "Custom runtimes"). */
  readonly kind: 'functions' | 'server';
  readonly state: AppState;
  /** A hash of the app's files: changes when its code does. */
  readonly version: string;
  /** None where a server is called, and of functions that have not been loaded yet. */
  readonly functions: readonly FunctionSpec[];
  /** Why a broken app is broken. */
  readonly error?: ErrorFields;
  /** How many runs may wait in the app's queue. */
  readonly queueLimit: number;
  /** How long a run may wait in the queue, milliseconds. */
  readonly queueTimeoutMs: number;
  /** Whether a yielded string that is whole SSE events goes through as it is (contract 3, `[streaming] preformatted`). */
  readonly preformatted: boolean;
  /** Whether a server is given the caller's `Authorization` (`[runtime.custom] forward_auth`). */
  readonly forwardAuth?: boolean;
}
