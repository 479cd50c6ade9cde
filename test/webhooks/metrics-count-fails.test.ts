import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BacklogRepository } from '../../src/webhooks/worker/backlog.repository.js';
import { EndedDeliveryCounts } from '../../src/webhooks/worker/ended-delivery-counts.js';
import { eventually, startTestService, type TestService } from '../harness/index.js';
import { explainQueriesOf } from '../infra/database/explained-queries.js';
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

it('a count that takes too long leaves its gauges out of /metrics, and nothing else', async () => {
  const client = await service.database.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('LOCK TABLE webhook_deliveries IN ACCESS EXCLUSIVE MODE');
    const [{ status, names }, second] = await Promise.all([scrape(), scrape()]);
    expect([status, second.status]).toEqual([200, 200]);
    expect([...names]).toEqual(
      expect.arrayContaining(['webhook_endpoint_blocks_total', 'webhook_endpoint_disables_total']),
    );
    // Neither a wrong number nor a zero that nobody counted.
    expect([...names].filter((name) => GAUGES.includes(name))).toEqual([]);
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
  const partner = await service.createPartner();
  const fields = { url: 'https://partner.example/hook', mode: 'sandbox' };
  await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, fields);
  // The failed count is kept for ten seconds, as any other.
  await eventually('they are back', async () => (await scrape()).names.has('webhook_endpoints'));
});

it('a count of millions that have ended hides neither the age of the oldest due one nor what is open (D34)', async () => {
  vi.spyOn(EndedDeliveryCounts.prototype, 'read').mockReturnValue(new Promise(() => undefined));
  const { pool } = service.database;
  await fillTable(pool, 'webhook_endpoints', 1, { id: `'whe_slow'`, enabled: 'true', blocked_until: 'NULL' });
  // One that is due since an hour, and whose endpoint is leased for longer than the test.
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

it('the oldest due one and what is open are found by index among many that have ended', async () => {
  const { pool } = service.database;
  await fillTable(pool, 'webhook_endpoints', 3, { id: `'whe_' || i`, enabled: 'true' });
  await fillTable(pool, 'webhook_deliveries', 40_000, {
    endpoint_id: `'whe_' || (1 + i % 3)`,
    mode: `'sandbox'`,
    status: `CASE WHEN i % 10000 = 0 THEN 'pending' ELSE 'delivered' END`,
    kind: `'event'`,
    next_attempt_at: `CASE WHEN i % 10000 = 0 THEN now() END`,
  });
  await pool.query('ANALYZE');
  const { dataSource } = service.process.resources.of('worker');
  const backlog = new BacklogRepository(dataSource.manager);
  const queries = await explainQueriesOf(dataSource, async () => {
    await backlog.countEndpoints();
    await backlog.oldestDueSeconds();
    await backlog.countOpen();
  });
  const read = queries.filter(({ text }) => text.includes('webhook_deliveries'));
  expect(read.length).toBeGreaterThanOrEqual(2);
  for (const { text, rows, scanned } of read) {
    // The partition of what is open may be read as it likes: four rows.
    expect(
      scanned.filter((table) => table.startsWith('webhook_deliveries') && !table.endsWith('_open')),
      text,
    ).toEqual([]);
    expect(rows, text).toBeLessThan(100);
  }
});
