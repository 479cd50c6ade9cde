import { afterEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import {
  deliveryThat,
  endpointState,
  listDeliveries,
  recordEvent,
  recordEvents,
  registerEndpoint,
} from './support.js';

const services: TestService[] = [];
const receivers: TestReceiver[] = [];
afterEach(async () => {
  for (const service of services.splice(0)) await service.stop();
  for (const receiver of receivers.splice(0)) await receiver.close();
});

async function start(env: Record<string, string>): Promise<TestService> {
  const service = await startTestService({ env });
  services.push(service);
  return service;
}

async function receiver(): Promise<TestReceiver> {
  const made = await startReceiver();
  receivers.push(made);
  return made;
}

const times = (count: number, partnerId: string) => Array.from({ length: count }, () => ({ partnerId }));

describe('an endpoint that hangs', () => {
  it('does not delay another one, even at the same origin', async () => {
    // So many slots that the part of one partner lets five of its endpoints be full (D42).
    const env = {
      WEBHOOK_TIMEOUT_MS: '25000',
      SHUTDOWN_TIMEOUT_MS: '200',
      WEBHOOK_CONCURRENCY: '8192',
      LEASE_MS: '60000',
    };
    const service = await start(env);
    const [slow, quick] = [await service.createPartner(), await service.createPartner()];
    const shared = await receiver();
    shared.answer = (_nth, webhook, response) => {
      if (!webhook.body.includes('"iccid":"hang"')) response.writeHead(200).end();
    };
    for (let i = 0; i < 5; i++) await registerEndpoint(service, slow.id, { url: shared.url });
    await registerEndpoint(service, quick.id, { url: shared.url });
    await recordEvents(
      service,
      Array.from({ length: 40 }, () => ({ partnerId: slow.id, iccid: 'hang' })),
    );
    await eventually('five full endpoints', () => shared.received.length === 5 * 16);

    const before = shared.received.length;
    const startedAt = performance.now();
    await recordEvents(service, times(100, quick.id));
    await eventually('the quick ones', () => shared.received.length === before + 100);
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });
});

describe('attempts in flight', () => {
  it('are bounded per endpoint, and used to the bound', async () => {
    const service = await start({ WEBHOOK_CONCURRENCY_PER_ENDPOINT: '3' });
    const partner = await service.createPartner();
    const target = await receiver();
    let open = 0;
    let most = 0;
    target.answer = (_nth, _webhook, response) => {
      most = Math.max(most, ++open);
      setTimeout(() => {
        open--;
        response.writeHead(200).end();
      }, 30);
    };
    const endpoint = await registerEndpoint(service, partner.id, { url: target.url });
    await recordEvents(service, times(40, partner.id));
    await eventually(
      'all sent',
      async () => (await listDeliveries(service, endpoint, '&status=delivered')).length === 40,
    );
    expect(most).toBe(3);
    expect(target.received).toHaveLength(40);
  });

  it('are the oldest ones: with one slot, in the order of the events, after an outage too', async () => {
    const service = await start({ WEBHOOK_CONCURRENCY_PER_ENDPOINT: '1' });
    const partner = await service.createPartner();
    const target = await receiver();
    const endpoint = await registerEndpoint(service, partner.id, { url: target.url });
    await service.admin.post(`${endpoint.path}/disable`);
    for (let i = 0; i < 10; i++) await recordEvent(service, { partnerId: partner.id, iccid: String(i) });
    await service.admin.post(`${endpoint.path}/enable`);
    await eventually('all sent', () => target.received.length === 10);
    const order = target.received.map(
      (webhook) => (JSON.parse(webhook.body) as { data: { iccid: string } }).data.iccid,
    );
    expect(order).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
  });
});

describe('two workers', () => {
  it('send each of a thousand deliveries once', async () => {
    // A stalled worker's lease would be taken by the other, which would send once more.
    const env = { LEASE_MS: '60000' };
    const service = await start(env);
    services.push(await startTestService({ role: 'worker', database: service.database, env }));
    const partner = await service.createPartner();
    const target = await receiver();
    for (let i = 0; i < 4; i++) await registerEndpoint(service, partner.id, { url: target.url });
    await Promise.all(Array.from({ length: 50 }, () => recordEvents(service, times(5, partner.id))));
    await eventually('a thousand', () => target.received.length >= 1_000);
    await eventually('recorded', async () => {
      const { rows } = await service.database.pool.query(
        `SELECT count(*)::int AS delivered FROM webhook_deliveries WHERE status = 'delivered' AND attempt_count = 1`,
      );
      return rows[0].delivered === 1_000;
    });
    expect(new Set(target.received.map((webhook) => webhook.headers['x-service-delivery'])).size).toBe(1_000);
    expect(target.received).toHaveLength(1_000);
    const { rows } = await service.database.pool.query(
      'SELECT count(*)::int AS attempts FROM webhook_attempts',
    );
    expect(rows[0]).toEqual({ attempts: 1_000 });
  });
});

describe('a database that ends every connection again and again', () => {
  it('makes no delivery lost and none sent without need', async () => {
    const service = await start({});
    const partner = await service.createPartner();
    const target = await receiver();
    target.answer = (_nth, _webhook, response) => {
      setTimeout(() => response.writeHead(200).end(), 20);
    };
    await registerEndpoint(service, partner.id, { url: target.url });
    await recordEvents(service, times(400, partner.id));
    for (let i = 0; i < 5; i++) {
      await service.database.pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'partner-esim%'`,
      );
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    await eventually('all delivered', async () => {
      const { rows } = await service.database.pool.query(
        `SELECT count(*)::int AS delivered FROM webhook_deliveries WHERE status = 'delivered'`,
      );
      return rows[0].delivered === 400;
    });
    const ids = new Set(target.received.map((webhook) => webhook.headers['x-service-delivery']));
    expect(ids.size).toBe(400);
    // A claim whose answer is lost with its connection is repeated when its lease lapses; an outcome is kept.
    // Each of the five cuts may lose one claim, of at most the 16 that are in flight.
    expect(target.received.length - 400).toBeLessThanOrEqual(5 * 16);
  });
});

describe('every event', () => {
  it('times its endpoints is delivered, failed, pending, held or discarded', async () => {
    const service = await start({
      WEBHOOK_RETRY_DELAYS_MS: '20,20,20,20,20',
      WEBHOOK_BLOCK_MS: '100',
      WEBHOOK_BLOCKS_BEFORE_DISABLE: '2',
    });
    const partner = await service.createPartner();
    const target = await receiver();
    target.answer = (nth, _webhook, response) => void response.writeHead(nth % 3 === 0 ? 200 : 500).end();
    const dead = await receiver();
    dead.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    const endpoints = [
      await registerEndpoint(service, partner.id, { url: target.url }),
      await registerEndpoint(service, partner.id, { url: dead.url }),
      await registerEndpoint(service, partner.id, { url: target.url }),
    ];
    for (let i = 0; i < 20; i++) await recordEvents(service, times(5, partner.id));
    await eventually(
      'disabled',
      async () => (await endpointState(service, endpoints[1]!)).status === 'disabled',
    );
    await deliveryThat(service, endpoints[1]!, 'is held', (d) => d.status === 'held');
    await service.admin.call('DELETE', endpoints[2]!.path);
    for (const endpoint of endpoints) expect(await listDeliveries(service, endpoint)).toHaveLength(100);
    const counts = async (status: string): Promise<number> => {
      const lists = await Promise.all(endpoints.map((e) => listDeliveries(service, e, `&status=${status}`)));
      return lists.flat().length;
    };
    await eventually('an equation that holds', async () => {
      const sums = await Promise.all(['delivered', 'failed', 'pending', 'held', 'discarded'].map(counts));
      return sums.reduce((a, b) => a + b, 0) === 300 && sums[2] === 0;
    });
  });
});
