import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BacklogRepository } from '../../src/webhooks/worker/backlog.repository.js';
import { DeliveriesRepository } from '../../src/webhooks/worker/deliveries.repository.js';
import { startTestService, type TestService } from '../harness/index.js';
import { explainQueriesOf } from '../infra/database/explained-queries.js';
import { registerEndpoint } from './support.js';

/** A claim that reads all of them would touch 2,000 blocks. */
const GIVEN_UP = 50_000;
const ENDPOINTS = 24;
/** More than one page of a step. */
const FAILED = 2_500;

// Without a worker, nothing updates the discarded deliveries in the meantime.
let service: TestService;
let dataSource: DataSource;

beforeAll(async () => {
  service = await startTestService({ role: 'admin' });
  ({ dataSource } = service.process.resources);
});
afterAll(() => service.stop());

const query = (text: string, values: unknown[] = []) => service.database.pool.query(text, values);
const deliveries = () => new DeliveriesRepository(dataSource.manager);

async function lease(endpointIds: readonly string[]): Promise<void> {
  await query(
    `INSERT INTO webhook_endpoint_leases (endpoint_id, owner, fence, until)
     SELECT id, 'test', 1, now() + interval '1 hour' FROM unnest($1::text[]) AS id`,
    [endpointIds],
  );
}

const claim = (endpointIds: readonly string[]) =>
  deliveries().claim(
    'test',
    endpointIds.map((endpointId) => ({ endpointId, fence: '1', free: 16 })),
  );

/** Inserts deliveries created `ageMs` ago, a microsecond apart, and due since then. */
async function insertPending(
  prefix: string,
  endpointId: string,
  count: number,
  ageMs: number,
): Promise<void> {
  await query(
    `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                     next_attempt_at, created_at)
     SELECT $1 || n, $2, 'ptn_1', 'sandbox', 'evt_' || n, 'esim.activated', 'event', 'pending', at, at
     FROM generate_series(1, $3::int) AS n
     CROSS JOIN LATERAL (SELECT now() - ($4::int - n / 1000.0) * interval '1 millisecond' AS at) AS made`,
    [prefix, endpointId, count, ageMs],
  );
}

describe(`an endpoint with ${GIVEN_UP} discarded deliveries that are not updated yet (D32, D34)`, () => {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, nth) => `whe_${nth}`);

  beforeAll(async () => {
    await query(`INSERT INTO partners (id, name, status) VALUES ('ptn_1', 'One', 'active')`);
    await query(
      `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret)
       SELECT id, 'ptn_1', 'sandbox', 'https://partner.example', '' FROM unnest($1::text[]) AS id`,
      [endpoints],
    );
    await insertPending('dlv_given_up_', 'whe_0', GIVEN_UP, 60_000);
    await query(`UPDATE webhook_endpoints SET discard_before = now() WHERE id = 'whe_0'`);
    for (const id of endpoints) await insertPending(`dlv_kept_${id}_`, id, 1, 0);
    await query('ANALYZE webhook_deliveries, webhook_endpoints');
  });

  it('costs a few rows to find due endpoints and the oldest due delivery', async () => {
    const { rows: inOrder } = await query('SELECT id FROM webhook_endpoints ORDER BY id');
    const queries = await explainQueriesOf(dataSource, async () => {
      expect(await deliveries().listEndpointsDue('test', '', 100)).toEqual(inOrder.map(({ id }) => id));
      expect(await new BacklogRepository(dataSource.manager).oldestDueSeconds()).toBeLessThan(60);
    });
    const rows = queries.filter(({ text }) => text.includes('webhook_deliveries')).map((read) => read.rows);
    expect(rows).toHaveLength(2);
    for (const read of rows) {
      expect(read).toBeGreaterThanOrEqual(ENDPOINTS);
      expect(read).toBeLessThan(20 * ENDPOINTS);
    }
  });

  it('costs a few rows to claim it and its neighbors, including later deliveries', async () => {
    await lease(endpoints);
    const claimed = await claim(endpoints);
    const ids = [...claimed.values()].flatMap((each) => each.deliveries.map(({ id }) => id));
    expect(ids.sort()).toEqual(endpoints.map((id) => `dlv_kept_${id}_1`).sort());
    // Now nothing is due, so it also looks for the next due time.
    const queries = await explainQueriesOf(dataSource, () => claim(endpoints));
    const [read] = queries.filter(({ text }) => text.includes('webhook_deliveries'));
    expect(read!.rows).toBeGreaterThan(ENDPOINTS);
    // Rows that are read repeatedly count each time.
    expect(read!.rows).toBeLessThan(50 * ENDPOINTS);
  });
});

describe('a delivery that is resent while older ones are discarded (D32)', () => {
  it('is claimed before the discard is complete, oldest first', async () => {
    const partner = await service.createPartner();
    const endpoint = await registerEndpoint(service, partner.id, { url: 'https://partner.example/hook' });
    await service.admin.post(`${endpoint.path}/disable`);
    await query(
      `WITH made AS (
         INSERT INTO events (id, partner_id, mode, type, body, created_at)
         -- ids in another order than times
         SELECT 'evt_' || substr($2, 5, 16) || lpad(((n * 7919) % 10000)::text, 10, '0'), $2, 'sandbox',
                'esim.activated', '{}', now() - interval '1 minute' + n * interval '1 millisecond'
         FROM generate_series(1, $1::int) AS n RETURNING id, type, created_at
       )
       INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                       attempt_count, counted_attempts, created_at, failed_at, ended_at)
       SELECT 'dlv' || substr(id, 4), $3, $2, 'sandbox', id, type, 'event', 'failed', 6, 6, created_at, created_at,
              created_at FROM made`,
      [FAILED, partner.id, endpoint.id],
    );
    await insertPending('dlv_held_', endpoint.id, 10, 120_000);
    await service.admin.post(`${endpoint.path}/enable`, { held: 'discard', failed: 'resend' });
    const { rows: resent } = await query(
      `SELECT array_agg(e.created_at::text ORDER BY d.next_attempt_at, d.id) AS at
       FROM webhook_deliveries d JOIN events e ON e.id = d.event_id
       WHERE d.endpoint_id = $1 AND d.status = 'pending' AND d.kind = 'resend'`,
      [endpoint.id],
    );
    expect(resent[0].at).toHaveLength(FAILED);
    expect(resent[0].at).toEqual(resent[0].at.toSorted());
    await lease([endpoint.id]);
    const { deliveries: items } = (await claim([endpoint.id])).get(endpoint.id)!;
    const { rows: oldest } = await query(
      `SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND kind = 'resend'
       ORDER BY (SELECT created_at FROM events e WHERE e.id = event_id) LIMIT 16`,
      [endpoint.id],
    );
    expect(items.map(({ id }) => id)).toEqual(oldest.map(({ id }) => id));
  });
});
