// W3C Trace Context, level 1: the `traceparent` header.

/** Version, trace id, parent id, flags. Later versions may add fields. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/** The parts of a valid `traceparent`. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Returns the parts of the header, or nothing if the header is invalid or its ids are zero: such a header is ignored (§3.2.2). */
export function parseTraceparent(header: string | undefined): TraceContext | undefined {
  const match = header === undefined ? undefined : FORM.exec(header);
  if (!match) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = match;
  // Version ff is forbidden. Version 00 has exactly four fields; a later version may have more.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Returns a header of version 00, the only version that this service writes. */
export const formatTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;

/** Returns the header to pass on, in version 00, or nothing if it is invalid. */
export function validTraceparent(header: string | undefined): string | undefined {
  const context = parseTraceparent(header);
  return context && formatTraceparent(context);
}
