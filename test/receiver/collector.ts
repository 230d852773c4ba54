// OTLP over HTTP, JSON: a trace collector for tests. It keeps every request.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { listening, type Receiver } from './receivers.ts';

/** A received span, with its attributes and its service as plain values. */
export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** 2: an error. */
  readonly status: number;
  readonly startMs: number;
  readonly endMs: number;
}

export interface Collector extends Receiver {
  /** The value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly endpoint: string;
  readonly spans: CollectedSpan[];
  /** Every received request: its text and its headers. */
  readonly bodies: string[];
  readonly heads: IncomingHttpHeaders[];
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Payload {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string;
        readonly kind: number;
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly attributes: readonly Attribute[];
        readonly status: { readonly code: number };
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
      }[];
    }[];
  }[];
}

const plain = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

function spansOf(payload: Payload): CollectedSpan[] {
  return payload.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ name, kind, traceId, spanId, parentSpanId, attributes, status, ...times }) => ({
        service: String(plain(resource.attributes)['service.name']),
        name,
        kind,
        traceId,
        spanId,
        parentSpanId,
        attributes: plain(attributes),
        status: status.code,
        startMs: Number(BigInt(times.startTimeUnixNano) / 1_000_000n),
        endMs: Number(BigInt(times.endTimeUnixNano) / 1_000_000n),
      })),
    ),
  );
}

export async function collector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const bodies: string[] = [];
  const heads: IncomingHttpHeaders[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const known = request.url === '/v1/traces' && request.headers['content-type'] === 'application/json';
    if (known) {
      bodies.push(body);
      heads.push(request.headers);
      spans.push(...spansOf(JSON.parse(body) as Payload));
    }
    response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' }).end('{}');
  });
  const receiver = await listening(server);
  return { ...receiver, endpoint: `http://127.0.0.1:${receiver.port}`, spans, bodies, heads };
}
