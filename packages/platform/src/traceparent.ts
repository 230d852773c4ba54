// W3C Trace Context, level 1: the `traceparent` header.

/** Version, trace id, parent id, flags, and (only of versions to come) more. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/** A valid `traceparent` in its parts. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** The header in its parts; nothing where it is none, or all zero: such a header is ignored (§3.2.2). */
export function parseTraceparent(header: string | undefined): TraceContext | undefined {
  const match = header === undefined ? undefined : FORM.exec(header);
  if (!match) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = match;
  // Version ff is forbidden; version 00 has exactly four fields, a later one may have more behind them.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** As version 00, which is all that we say of it. */
export const formatTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;

/** The header as it is passed on: valid and of version 00, or nothing. */
export function validTraceparent(header: string | undefined): string | undefined {
  const context = parseTraceparent(header);
  return context && formatTraceparent(context);
}
