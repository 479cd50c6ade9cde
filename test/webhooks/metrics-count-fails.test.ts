import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { EndedDeliveryCounts } from '../../src/webhooks/worker/ended-delivery-counts.js';
import { eventually, startTestService, type TestService } from '../harness/index.js';
import { fillTable } from '../infra/database/filled-tables.js';

const GAUGES = ['webhook_deliveries', 'webhook_endpoints', 'webhook_oldest_due_seconds'];

let service: TestService;

beforeEach(async () => {
  service = await startTestService();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await service.stop();
});

/** Names of the metrics that have a sample. */
async function scrape(): Promise<{ status: number; names: Set<string> }> {
  const answer = await fetch(`${service.process.admin!.url}/metrics`, {
    signal: AbortSignal.timeout(15_000),
  });
  const samples = (await answer.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return { status: answer.status, names: new Set(samples.map((line) => line.split(/[{ ]/, 1)[0]!)) };
}

it('omits from /metrics only the gauges of a count that takes too long', async () => {
  const client = await service.database.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('LOCK TABLE webhook_deliveries IN ACCESS EXCLUSIVE MODE');
    const [{ status, names }, second] = await Promise.all([scrape(), scrape()]);
    expect([status, second.status]).toEqual([200, 200]);
    expect([...names]).toEqual(
      expect.arrayContaining(['webhook_endpoint_blocks_total', 'webhook_endpoint_disables_total']),
    );
    // The scrape must omit the metric, not report a wrong number or zero.
    expect([...names].filter((name) => GAUGES.includes(name))).toEqual([]);
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
  const partner = await service.createPartner();
  const fields = { url: 'https://partner.example/hook', mode: 'sandbox' };
  await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, fields);
  // A failed count is cached for ten seconds, like any other.
  await eventually('they are back', async () => (await scrape()).names.has('webhook_endpoints'));
});

it('shows the age of the oldest due delivery and the open ones while millions of ended ones are counted (D34)', async () => {
  vi.spyOn(EndedDeliveryCounts.prototype, 'read').mockReturnValue(new Promise(() => undefined));
  const { pool } = service.database;
  await fillTable(pool, 'webhook_endpoints', 1, { id: `'whe_slow'`, enabled: 'true', blocked_until: 'NULL' });
  // A delivery that has been due for an hour, whose endpoint is leased for longer than the test.
  await fillTable(pool, 'webhook_endpoint_leases', 1, {
    endpoint_id: `'whe_slow'`,
    owner: `'test'`,
    until: `now() + interval '1 day'`,
  });
  await fillTable(pool, 'webhook_deliveries', 1, {
    endpoint_id: `'whe_slow'`,
    kind: `'event'`,
    status: `'pending'`,
    next_attempt_at: `now() - interval '1 hour'`,
  });
  const startedAt = performance.now();
  const { status, names } = await scrape();
  expect(status).toBe(200);
  expect([...names].filter((name) => GAUGES.includes(name)).sort()).toEqual([...GAUGES].sort());
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
