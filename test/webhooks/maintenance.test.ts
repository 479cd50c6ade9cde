import { pino } from 'pino';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ENTITIES } from '../../src/apps/process-resources.js';
import { loadConfig } from '../../src/config/index.js';
import { createDataSource } from '../../src/infra/database/index.js';
import type { SweeperOptions, Sweeps } from '../../src/infra/sweeps.js';
import { EndpointStatsRepository } from '../../src/webhooks/endpoint-stats.repository.js';
import { BacklogRepository } from '../../src/webhooks/worker/backlog.repository.js';
import { DiscardDeliveries } from '../../src/webhooks/worker/discard-deliveries.js';
import { DiscardsRepository } from '../../src/webhooks/worker/discards.repository.js';
import { WebhookMaintenance } from '../../src/webhooks/worker/webhook-maintenance.js';
import { createTestDatabase, type TestDatabase, testEnvironment } from '../harness/index.js';

const runs = new Map<string, SweeperOptions['run']>();
const lines: string[] = [];
let database: TestDatabase;
let dataSource: DataSource;

beforeAll(async () => {
  database = await createTestDatabase();
  const { url } = database;
  const options = { url, poolMax: 2, poolWaitMs: 20_000, entities: ENTITIES, applicationName: 'test' };
  dataSource = await createDataSource(options).initialize();
  await query(`INSERT INTO partners (id, name, status) VALUES ('ptn_1', 'One', 'active')`);
  await query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'check_violation'; END $$`);
});
beforeEach(async () => {
  lines.length = 0;
  const { manager } = dataSource;
  const discards = new DiscardsRepository(manager);
  const register = (sweep: SweeperOptions) => void runs.set(sweep.name, (stopping) => sweep.run(stopping));
  new WebhookMaintenance(
    loadConfig(testEnvironment(database.url)),
    pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) }),
    new BacklogRepository(manager),
    discards,
    new DiscardDeliveries(discards),
    new EndpointStatsRepository(manager),
    { register } as unknown as Sweeps,
  );
  for (const table of refusing.splice(0)) await query(`DROP TRIGGER refuse ON ${table}`);
  for (const table of ['deliveries', 'backlog_jobs', 'endpoint_stats', 'endpoints'])
    await query(`DELETE FROM webhook_${table}`);
  await query(
    `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret)
     SELECT 'whe_' || n, 'ptn_1', 'sandbox', 'https://partner.example', '' FROM generate_series(1, 3) AS n`,
  );
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

const query = (text: string, values: unknown[] = []) => database.pool.query(text, values);
const run = (name: string) => runs.get(name)!(new AbortController().signal);
/** Tables for which PostgreSQL rejects rows in this test. */
const refusing: string[] = [];

/** Makes PostgreSQL reject rows of a table that match `condition`. */
async function refuse(change: string, table: string, condition: string): Promise<void> {
  await query(
    `CREATE TRIGGER refuse BEFORE ${change} ON ${table} FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION refuse()`,
  );
  refusing.push(table);
}

async function insertOwed(
  id: string,
  endpointId: string,
  status: string,
  { dueAt = 'now()', age = '10 minutes' } = {},
): Promise<void> {
  await query(
    `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                     next_attempt_at, created_at)
     VALUES ($1, $2, 'ptn_1', 'sandbox', 'evt_1', 'esim.activated', 'event', $3, ${dueAt}, now() - interval '${age}')`,
    [id, endpointId, status],
  );
}

async function statusOf(id: string): Promise<string> {
  return (await query('SELECT status FROM webhook_deliveries WHERE id = $1', [id])).rows[0].status as string;
}

describe('updating discarded deliveries', () => {
  beforeEach(() => query(`UPDATE webhook_endpoints SET discard_before = now() - interval '5 minutes'`));

  it('continues with the next endpoint and its other tasks when one fails, and the run fails (D43)', async () => {
    await insertOwed('dlv_1', 'whe_1', 'pending');
    await insertOwed('dlv_2', 'whe_2', 'pending');
    await insertOwed('dlv_abandoned', 'whe_3', 'discarding');
    await refuse('INSERT', 'webhook_deliveries_sandbox', `NEW.endpoint_id = 'whe_1'`);
    await expect(run('webhooks.discards')).rejects.toThrow('refused by the test');
    expect([await statusOf('dlv_1'), await statusOf('dlv_2')]).toEqual(['pending', 'discarded']);
    expect(await statusOf('dlv_abandoned')).toBe('discarded');
    const { rows } = await query('SELECT id FROM webhook_endpoints WHERE discard_before IS NOT NULL');
    expect(rows).toEqual([{ id: 'whe_1' }]);
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
      expect.objectContaining({ event: 'webhook.maintenance_failed', endpointId: 'whe_1' }),
    ]);
  });

  it('starts with deliveries that are due after the discard, because claims must read past them (D34)', async () => {
    await insertOwed('dlv_before', 'whe_1', 'pending', { dueAt: `now() - interval '6 minutes'` });
    await insertOwed('dlv_after', 'whe_1', 'pending', { dueAt: `now() + interval '6 minutes'` });
    await run('webhooks.discards');
    const { rows } = await query(
      `SELECT id FROM webhook_deliveries WHERE status = 'discarded' ORDER BY ended_at`,
    );
    expect(rows.map(({ id }) => id)).toEqual(['dlv_after', 'dlv_before']);
  });

  it('skips and names each single delivery that is rejected (D43)', async () => {
    for (const [nth, status] of ['pending', 'pending', 'pending', 'discarding', 'discarding'].entries())
      await insertOwed(`dlv_${nth}`, 'whe_1', status);
    await refuse('INSERT', 'webhook_deliveries_sandbox', `NEW.id IN ('dlv_1', 'dlv_3')`);
    await expect(run('webhooks.discards')).rejects.toThrow(/dlv_1: .*refused by the test.*dlv_3: /s);
    const statuses = await Promise.all([0, 1, 2, 3, 4].map((nth) => statusOf(`dlv_${nth}`)));
    expect(statuses).toEqual(['discarded', 'pending', 'discarded', 'discarding', 'discarded']);
  });

  it('skips at most fifty rejected deliveries per run, and the next run continues after them', async () => {
    for (let nth = 0; nth < 60; nth++)
      await insertOwed(`dlv_bad_${nth}`, 'whe_1', 'pending', { dueAt: `now() - interval '7 minutes'` });
    await insertOwed('dlv_good', 'whe_1', 'pending', { dueAt: `now() - interval '6 minutes'` });
    await refuse('INSERT', 'webhook_deliveries_sandbox', `NEW.id LIKE 'dlv_bad%'`);
    await expect(run('webhooks.discards')).rejects.toThrow('and 45 more');
    expect(await statusOf('dlv_good')).toBe('pending');
    await expect(run('webhooks.discards')).rejects.toThrow('and 5 more');
    expect(await statusOf('dlv_good')).toBe('discarded');
    await expect(run('webhooks.discards'), 'from the beginning again').rejects.toThrow('and 45 more');
  });

  it('leaves locked deliveries to the next run', async () => {
    await insertOwed('dlv_1', 'whe_1', 'pending');
    await insertOwed('dlv_2', 'whe_1', 'pending');
    const client = await database.pool.connect();
    try {
      await client.query(`BEGIN; SELECT FROM webhook_deliveries WHERE id = 'dlv_1' FOR UPDATE`);
      await run('webhooks.discards');
      expect([await statusOf('dlv_1'), await statusOf('dlv_2')]).toEqual(['pending', 'discarded']);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
    await run('webhooks.discards');
    expect(await statusOf('dlv_1')).toBe('discarded');
  });

  it('keeps the discard time while a backlog is resent, because it determines the order (D32)', async () => {
    await query(
      `INSERT INTO webhook_backlog_jobs (id, kind, step, endpoint_id, partner_id, since, until, statuses)
       VALUES ('blg_1', 'resend', 'resend', 'whe_2', 'ptn_1', now(), now(), '{failed}')`,
    );
    await run('webhooks.discards');
    const { rows } = await query('SELECT id FROM webhook_endpoints WHERE discard_before IS NOT NULL');
    expect(rows).toEqual([{ id: 'whe_2' }]);
  });
});

describe('purging webhooks', () => {
  it('skips the one held delivery that is rejected (D43)', async () => {
    await query(`UPDATE webhook_endpoints SET enabled = false, updated_at = now() - interval '1 year'`);
    await query(
      `SELECT format('CREATE TABLE past_day PARTITION OF webhook_deliveries_sandbox FOR VALUES FROM (%L) TO (%L)', now() - interval '41 days', now() - interval '39 days') AS text`,
    ).then(({ rows }) => query(rows[0].text as string));
    for (const id of ['dlv_1', 'dlv_2', 'dlv_3'])
      await insertOwed(id, 'whe_1', 'pending', { age: '40 days' });
    await refuse('INSERT', 'past_day', `NEW.id = 'dlv_2'`);
    await expect(run('webhooks.purge')).rejects.toThrow('dlv_2: ');
    const statuses = await Promise.all(['dlv_1', 'dlv_2', 'dlv_3'].map(statusOf));
    expect(statuses).toEqual(['discarded', 'pending', 'discarded']);
  });

  it('continues with its other parts when one fails, and the run fails (D43, D44)', async () => {
    await query(
      `INSERT INTO webhook_backlog_jobs (id, kind, step, endpoint_id, partner_id, status, since, until, statuses, ended_at)
       VALUES ('rpl_1', 'replay', 'await', 'whe_1', 'ptn_1', 'completed', now(), now(), '{failed}', now() - interval '1 year')`,
    );
    await query(`UPDATE webhook_endpoints SET deleted_at = now() - interval '1 year' WHERE id = 'whe_2'`);
    await query(
      `INSERT INTO webhook_endpoint_stats (endpoint_id, at, delivered, failed, given_up, given_up_since_success, latencies)
       VALUES ('whe_3', now() - interval '1 year', 0, 0, 0, 0, '{}')`,
    );
    await refuse('DELETE', 'webhook_backlog_jobs', 'true');
    await expect(run('webhooks.purge')).rejects.toThrow('refused by the test');
    expect((await query('SELECT id FROM webhook_endpoints ORDER BY id')).rows.map(({ id }) => id)).toEqual([
      'whe_1',
      'whe_3',
    ]);
    expect((await query('SELECT 1 FROM webhook_endpoint_stats')).rowCount).toBe(0);
    expect(JSON.parse(lines[0]!)).toMatchObject({ event: 'webhook.maintenance_failed', what: 'jobs' });
  });
});
