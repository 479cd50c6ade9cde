import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { eventually } from './eventually.js';

/** A span as received by a collector, with its attributes as an object. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  /** 2: server, 3: client, 5: consumer. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 2: error. */
  readonly status: number;
  readonly startMs: number;
  readonly endMs: number;
  /** Resource attributes of the process, e.g. `service.name` and `esim.role`. */
  readonly resource: Readonly<Record<string, string | number>>;
}

export interface TraceCollector {
  /** Value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string;
  readonly spans: ReceivedSpan[];
  /** The received bodies, byte for byte. */
  readonly bodies: string[];
  readonly headers: IncomingHttpHeaders[];
  /** Stops responding from now on. */
  hang(): void;
  /** Waits for a span that `fits` and returns the first one. */
  spanThat(what: string, fits: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
  close(): Promise<void>;
}

type Attributes = readonly {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly intValue?: number | string;
    readonly doubleValue?: number;
  };
}[];

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Attributes };
    readonly scopeSpans: readonly { readonly spans: readonly Sent[] }[];
  }[];
}

interface Sent extends Pick<ReceivedSpan, 'traceId' | 'spanId' | 'name' | 'kind'> {
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Attributes;
  readonly links?: ReceivedSpan['links'];
  readonly status: { readonly code: number };
}

/** A collector of OTLP over HTTP in JSON, on loopback. */
export async function startTraceCollector(): Promise<TraceCollector> {
  let isHanging = false;
  const server = createServer((request, response) => {
    if (isHanging) return;
    text(request).then(
      (body) => {
        if (request.method !== 'POST' || request.url !== '/v1/traces') return response.writeHead(404).end();
        collector.bodies.push(body);
        collector.headers.push(request.headers);
        collector.spans.push(...spansOf(JSON.parse(body) as Export));
        return response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      },
      () => undefined,
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const collector: TraceCollector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    bodies: [],
    headers: [],
    hang: () => void (isHanging = true),
    spanThat: (what, fits) => eventually(`a span that ${what}`, () => collector.spans.find(fits)),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await Promise.resolve();
    },
  };
  return collector;
}

function spansOf({ resourceSpans }: Export): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => toSpan(span, toObject(resource.attributes)))),
  );
}

function toSpan(sent: Sent, resource: ReceivedSpan['resource']): ReceivedSpan {
  const { traceId, spanId, parentSpanId, name, kind, status, links = [] } = sent;
  return {
    ...{ traceId, spanId, parentSpanId, name, kind, resource },
    attributes: toObject(sent.attributes),
    links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
    status: status.code,
    startMs: Number(BigInt(sent.startTimeUnixNano) / 1_000_000n),
    endMs: Number(BigInt(sent.endTimeUnixNano) / 1_000_000n),
  };
}

function toObject(attributes: Attributes): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? Number(value.intValue ?? value.doubleValue ?? NaN),
    ]),
  );
}
