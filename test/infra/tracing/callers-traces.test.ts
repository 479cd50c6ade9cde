import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADMIN_TOKEN } from '../../harness/settings.js';
import { startTestService, type TestPartner, type TestService } from '../../harness/index.js';
import { startTraceCollector, type TraceCollector } from '../../harness/trace-collector.js';

const CALLERS = { tracestate: 'vendor=of-the-caller', baggage: 'user=of-the-caller' };

function callersTrace(flags: '00' | '01'): {
  traceId: string;
  spanId: string;
  headers: Record<string, string>;
} {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, headers: { ...CALLERS, traceparent: `00-${traceId}-${spanId}-${flags}` } };
}

let collector: TraceCollector;
let kept: TestService;
let partner: TestPartner;
beforeAll(async () => {
  collector = await startTraceCollector();
  kept = await startTestService({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
  partner = await kept.createPartner();
});
afterAll(async () => {
  await kept.stop();
  await collector.close();
});

const PORTS = ['partner', 'admin', 'portal'] as const;

function call(
  service: TestService,
  port: (typeof PORTS)[number],
  headers: Record<string, string>,
): Promise<Response> {
  const { api, admin, portal } = service.process;
  const [url, token] = {
    partner: [`${api!.url}/v1/me`, partner.sandboxKey],
    admin: [`${admin!.url}/internal/v1/partners`, ADMIN_TOKEN],
    portal: [`${portal!.url}/portal/v1/session`, ''],
  }[port];
  return fetch(url!, { headers: { ...headers, authorization: `Bearer ${token!}` } });
}

describe.each(PORTS)("a caller's trace on the %s port", (port) => {
  it.each(['00', '01'] as const)('with the flags %s is linked from a trace of our own', async (flags) => {
    const { traceId, spanId, headers } = callersTrace(flags);
    const answer = await call(kept, port, headers);
    await answer.text();
    const span = await collector.spanThat(`is linked with ${traceId}`, (each) =>
      each.links.some((link) => link.traceId === traceId),
    );
    expect(span).toMatchObject({ kind: 2, links: [{ traceId, spanId }] });
    expect([span.traceId === traceId, span.parentSpanId ?? '']).toEqual([false, '']);
    expect(collector.spans.filter((each) => each.traceId === traceId)).toEqual([]);
    expect(['traceparent', 'tracestate', 'baggage'].filter((name) => answer.headers.has(name))).toEqual([]);
    expect(collector.bodies.join('\n')).not.toContain('of-the-caller');
  });
});

it('keeps no trace because a caller keeps its own', async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const sampler = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' };
  const dropped = await startTestService({ database: kept.database, env: { ...env, ...sampler } });
  const theirs = callersTrace('01');
  for (const port of PORTS) await (await call(dropped, port, theirs.headers)).text();
  // Its end sends what waits.
  await dropped.stop();
  const own = callersTrace('01');
  await (await call(kept, 'admin', own.headers)).text();
  await collector.spanThat('came after all of those', ({ links }) => links[0]?.traceId === own.traceId);
  expect(collector.bodies.join('\n')).not.toContain(theirs.traceId);
});
