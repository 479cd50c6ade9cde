import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/index.js';
import { openTracer, type Tracer } from '../../../src/infra/tracing/index.js';
import { leastOf, startTestService, type TestService, testEnvironment } from '../../harness/index.js';
import { orderEnded } from '../../harness/order-steps.js';
import { freePort } from '../../../chaos/free-port.js';
import { startTraceCollector, type TraceCollector } from '../../harness/trace-collector.js';

/** Twice the queue size. A batch of 512 is sent as soon as it is full. */
const MANY = 4_096;

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function hangingCollector(): Promise<TraceCollector> {
  const collector = await startTraceCollector();
  closers.push(() => collector.close());
  collector.hang();
  return collector;
}

async function serviceWith(endpoint: string): Promise<TestService> {
  return startTestService({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, SHUTDOWN_TIMEOUT_MS: '20000' } });
}

async function buy(service: TestService): Promise<void> {
  const { sandbox } = await service.createPartner();
  const answer = await sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity: 1 });
  expect(answer.status, answer.text).toBe(202);
  expect(await orderEnded(sandbox, answer.body.data.id as string)).toMatchObject({ status: 'issued' });
}

describe('a collector that never responds', () => {
  it('delays no order, and a stop by at most half a second', async () => {
    const { url } = await hangingCollector();
    // An export would take five seconds, and the stop may take twenty.
    const stopMs = await leastOf(4_500, async () => {
      const service = await serviceWith(url);
      for (let nth = 0; nth < 5; nth++) await buy(service);
      const began = performance.now();
      await service.stop();
      return performance.now() - began;
    });
    expect(stopMs).toBeLessThan(4_500);
  });

  it('drops and counts the spans beyond the bounded queue', async () => {
    const { url } = await hangingCollector();
    const { tracer, dropped } = await tracerTo(url);
    for (let nth = 0; nth < MANY; nth++) tracer.start({ name: 'one', kind: 'client' }).end();
    expect(await dropped('queue_full')).toBe(MANY - 512 - 2_048);
    const began = performance.now();
    await tracer.close(200);
    // An export would take five seconds.
    expect(performance.now() - began).toBeLessThan(4_500);
  });
});

describe('an unreachable collector', () => {
  it('loses and counts its spans, and affects no order', async () => {
    const service = await serviceWith(`http://127.0.0.1:${await freePort()}`);
    await buy(service);
    await service.stop();
  });

  it('is reported in one line when exports begin to fail', async () => {
    const lines: string[] = [];
    const { tracer, dropped } = await tracerTo(`http://127.0.0.1:${await freePort()}`, lines);
    tracer.start({ name: 'one', kind: 'client' }).end();
    await tracer.close(30_000);
    expect(await dropped('export_failed')).toBe(1);
    expect(lines.filter((line) => line.includes('tracing.export_failed'))).toHaveLength(1);
  });
});

async function tracerTo(
  endpoint: string,
  lines: string[] = [],
): Promise<{ tracer: Tracer; dropped: (reason: string) => Promise<number> }> {
  const metrics = new Registry();
  const env = testEnvironment('postgres://nobody@localhost/none', { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const tracer = await openTracer({ config: loadConfig(env), role: 'worker', logger, metrics });
  const dropped = async (reason: string): Promise<number> => {
    const { values } = (await metrics.getSingleMetric('trace_spans_dropped_total')!.get()) as {
      values: { value: number; labels: { reason?: string } }[];
    };
    return values.find(({ labels }) => labels.reason === reason)?.value ?? 0;
  };
  return { tracer, dropped };
}
