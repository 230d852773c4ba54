// harness/PROTOCOL.md: the messages between the worker and a replica, with one type each.
import type { AnswerForm, ErrorCode, ErrorDetail, ItemKind } from '@inference-proxy/contracts';
import { errorKinds } from '@inference-proxy/contracts';
import { z } from 'zod';

export const PROTOCOL = 1;

const LIST_LIMIT = 4096;

/** A media type with at most three parameters (RFC 9110 §8.3.1). An app can forge a message, so no other value may reach a header. */
const MEDIA_TYPE = /^[\w.+-]{1,80}\/[\w.+-]{1,80}(?:; ?[\w.-]{1,40}=(?:[\w.+-]{1,80}|"[\w .+/=-]{0,80}")){0,3}$/;

const FORMS: ReadonlySet<unknown> = new Set<AnswerForm>(['sse', 'ndjson', 'chunks', 'bytes', 'json', 'text', 'binary']);

export interface InitMessage {
  /** Absolute path of the app's folder. */
  readonly app: string;
  /** The module's file, relative to the folder. */
  readonly entry: string;
  /** The largest number of runs at a time. */
  readonly concurrency: number;
  readonly maxItemBytes: number;
  readonly maxOutputBytes: number;
  /** Limit of a run's printed lines that wait to be sent: the size of a run's log. */
  readonly maxLogBytes: number;
  /** Whether error messages carry tracebacks. */
  readonly debug: boolean;
  /** Compiled files of the app, as JSON. They follow the header as its blob. */
  readonly sources?: Buffer;
  /** Whether arguments are checked and converted as their annotations require. Default: true. */
  readonly validate?: boolean;
}

const line = (header: object): Buffer => Buffer.from(`${JSON.stringify(header)}\n`);

export const initMessage = (init: InitMessage): Buffer => {
  const header = line({
    t: 'init',
    proto: PROTOCOL,
    app: init.app,
    entry: init.entry,
    concurrency: init.concurrency,
    max_item_bytes: init.maxItemBytes,
    max_output_bytes: init.maxOutputBytes,
    max_log_bytes: init.maxLogBytes,
    debug: init.debug,
    validate: init.validate,
    b: init.sources?.length,
  });
  return init.sources === undefined ? header : Buffer.concat([header, init.sources]);
};

/** Returns only the header. The parameters' bytes follow it unchanged. */
export const runHeader = (run: {
  runId: string;
  fn: string;
  paced: boolean;
  params: Buffer;
  traceparent?: string;
}): Buffer => line({ t: 'run', r: run.runId, f: run.fn, paced: run.paced, tp: run.traceparent, b: run.params.length });

export const creditMessage = (runId: string, upTo: number): Buffer => line({ t: 'credit', r: runId, n: upTo });

export const cancelMessage = (runId: string): Buffer => line({ t: 'cancel', r: runId });

export const drainMessage = (): Buffer => line({ t: 'drain' });

const parameterSchema = z.object({
  name: z.string(),
  required: z.boolean(),
  default: z.unknown().optional(),
  annotation: z.string().optional(),
});

const functionSchema = z.object({
  name: z.string(),
  doc: z.string().optional(),
  parameters: z.array(parameterSchema).max(LIST_LIMIT),
  extra: z.boolean(),
  /** Checked by `withBoundedSchemas`, because a wrong schema makes only its function untyped. */
  schema: z.unknown().optional(),
  untyped: z.string().optional(),
  media: z.string().regex(MEDIA_TYPE).optional(),
});

/** Messages that come once in a replica's life, a few times, or once for a cancel. */
const coldMessageSchema = z.discriminatedUnion('t', [
  z.object({
    t: z.literal('hello'),
    proto: z.literal(PROTOCOL),
    pid: z.number().int(),
    python: z.string().optional(),
    node: z.string().optional(),
    one_loop: z.boolean().optional(),
  }),
  z.object({ t: z.literal('ready'), setup_ms: z.number(), functions: z.array(functionSchema).max(LIST_LIMIT) }),
  z.object({
    t: z.literal('init_error'),
    stage: z.enum(['load', 'setup']),
    type: z.string(),
    message: z.string(),
    traceback: z.string(),
  }),
  z.object({ t: z.literal('worn'), why: z.string() }),
  z.object({ t: z.literal('cancelling'), r: z.string() }),
  z.object({ t: z.literal('bye') }),
]);

export type ColdMessage = z.infer<typeof coldMessageSchema>;

export interface LogMessage {
  readonly t: 'log';
  readonly r?: string;
  /** Number of lines in the blob. */
  readonly n: number;
  /** Number of lines dropped just before these lines. */
  readonly cut: number;
}

/** The answer is a body. Precedes `started` or `done`. */
export interface HeadMessage {
  readonly t: 'head';
  readonly r: string;
  readonly status: number;
  readonly media?: string;
  readonly form: AnswerForm;
}

export interface StartedMessage {
  readonly t: 'started';
  readonly r: string;
}

/** Fields of every terminal message. */
interface Terminal {
  readonly r: string;
  readonly items: number;
  readonly streamed: boolean;
  readonly ms: number;
}

export interface DoneMessage extends Terminal {
  readonly t: 'done';
  readonly status?: number;
}

export interface ErrorMessage extends Terminal {
  readonly t: 'error';
  readonly code: ErrorCode;
  readonly message: string;
  readonly type?: string;
  readonly details?: readonly ErrorDetail[];
  /** The exception's `status_code`. */
  readonly status?: number;
  /** The exception's `Retry-After`: seconds or an HTTP date. */
  readonly retry_after?: string;
  readonly traceback?: string;
}

export interface CancelledMessage extends Terminal {
  readonly t: 'cancelled';
}

export type TerminalMessage = DoneMessage | ErrorMessage | CancelledMessage;

/** The header of items. Only this header has no `t`. */
export interface ItemsMessage {
  readonly t: 'items';
  readonly r: string;
  readonly k: ItemKind;
  readonly n: number;
}

export type HarnessMessage = ColdMessage | LogMessage | HeadMessage | StartedMessage | ItemsMessage | TerminalMessage;

/** The bytes do not follow the protocol, so the process gets no further runs. */
export class ProtocolError extends Error {}

/** A header as received, before validation. */
export type Header = Readonly<Record<string, unknown>>;

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const isMedia = (value: unknown): boolean =>
  value === undefined || (typeof value === 'string' && MEDIA_TYPE.test(value));

const isHead = ({ r, status, media, form }: Header): boolean =>
  typeof r === 'string' && isCount(status) && status >= 200 && status <= 599 && isMedia(media) && FORMS.has(form);

const isErrorStatus = (value: unknown): boolean => isCount(value) && value >= 400 && value <= 599;

/** Values that are valid in the header (RFC 9110 §10.2.3). An app can forge a message, so no other value may reach a header. */
const isRetryAfter = (value: unknown): boolean =>
  typeof value === 'string' && /^(?:\d{1,9}|[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT)$/.test(value);

function isTerminal(header: Header): boolean {
  return (
    typeof header.r === 'string' &&
    isCount(header.items) &&
    typeof header.streamed === 'boolean' &&
    typeof header.ms === 'number' &&
    header.ms >= 0
  );
}

/** Checks the messages that come at least once a run. Checked by hand, because zod costs more than the rest of their processing. */
function isHot(header: Header): boolean {
  switch (header.t) {
    case 'started':
      return typeof header.r === 'string';
    case 'head':
      return isHead(header);
    case 'log':
      return (
        isCount(header.n) &&
        header.n > 0 &&
        isCount(header.cut) &&
        (header.r === undefined || typeof header.r === 'string')
      );
    case 'done':
      return isTerminal(header) && (header.status === undefined || isCount(header.status));
    case 'cancelled':
      return isTerminal(header);
    case 'error':
      return (
        isTerminal(header) &&
        typeof header.code === 'string' &&
        Object.hasOwn(errorKinds, header.code) &&
        typeof header.message === 'string' &&
        (header.status === undefined || isErrorStatus(header.status)) &&
        (header.retry_after === undefined || isRetryAfter(header.retry_after))
      );
    default:
      return false;
  }
}

/**
 * Returns a header as one of the harness's messages.
 * @throws ProtocolError for any other header
 */
export function decode(header: Header): HarnessMessage {
  if (header.t === undefined) {
    const { r, k, n } = header;
    if (
      typeof r === 'string' &&
      (k === 's' || k === 'j' || k === 'm' || (k === 'b' && n === 1)) &&
      isCount(n) &&
      n > 0
    ) {
      return { t: 'items', r, k, n };
    }
  } else if (isHot(header)) {
    return header as unknown as HarnessMessage;
  } else {
    const cold = coldMessageSchema.safeParse(header);
    if (cold.success) return cold.data;
  }
  throw new ProtocolError(`unknown message: ${JSON.stringify(header).slice(0, 200)}`);
}
