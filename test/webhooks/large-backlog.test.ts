import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { size } from '../harness/size.js';
import { registerEndpoint, type RegisteredEndpoint } from './support.js';

/** Enough for many steps. */
const DELIVERIES = size('BACKLOG_DELIVERIES', 6_000, 20_000);
/** Limit of one call, which locks the endpoint's row. */
const AT_ONCE = 2_000;
const ENV = { SWEEP_INTERVAL_MS: '60000', WEBHOOK_REPLAY_PER_SECOND: '1' };

let office: TestService;
let partner: TestPartner;
let endpoint: RegisteredEndpoint;
/** Started by the first test. */
let worker: RoleChild | null = null;

beforeAll(async () => {
  office = await startTestService({ role: 'admin' });
});
beforeEach(async () => {
  partner = await office.createPartner();
  // Nothing listens there. Deliveries fail, which does not matter here.
  endpoint = await registerEndpoint(office, partner.id, { url: 'http://127.0.0.1:9/hook' });
  await insertFailed(DELIVERIES);
});
afterEach(() => office.admin.call('DELETE', endpoint.path));
afterAll(async () => {
  await worker?.kill();
  await office.stop();
});

/** Inserts failed deliveries, each with its own event, one per millisecond until a minute ago. */
async function insertFailed(count: number): Promise<void> {
  await office.database.pool.query(
    `WITH made AS (
       INSERT INTO events (id, partner_id, mode, type, body, created_at)
       SELECT 'evt_' || substr($2, 5, 16) || lpad(n::text, 10, '0'), $2, 'sandbox', 'esim.activated', '{}',
              now() - interval '1 minute' - ($1::int - n) * interval '1 millisecond'
       FROM generate_series(1, $1::int) AS n
       RETURNING id, type, created_at
     )
     INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, attempt_count,
                                     counted_attempts, created_at, failed_at, ended_at)
     SELECT 'dlv' || substr(id, 4), $3, $2, 'sandbox', id, type, 'event', 'failed', 6, 6, created_at,
            now() - interval '30 seconds', now() - interval '30 seconds' FROM made`,
    [count, partner.id, endpoint.id],
  );
  await office.database.pool.query('ANALYZE events, webhook_deliveries');
}

async function startWorker(): Promise<void> {
  if (worker) await worker.restart();
  else worker = await RoleChild.start({ role: 'worker', database: office.database, env: ENV });
}

async function numberOf(text: string): Promise<number> {
  const { rows } = await office.database.pool.query<{ n: number }>(text, [endpoint.id]);
  return rows[0]!.n;
}

/** The duration of a call in milliseconds, and its response. */
async function timed<T>(call: () => Promise<T>): Promise<{ readonly ms: number; readonly answer: T }> {
  const startedAt = performance.now();
  const answer = await call();
  return { ms: performance.now() - startedAt, answer };
}

describe(`an endpoint with ${DELIVERIES} failed deliveries`, () => {
  const RESENT = `SELECT count(*)::int AS n FROM webhook_deliveries WHERE endpoint_id = $1 AND kind = 'resend'`;

  it('is enabled at once, and resends everything once in steps, even if the worker is killed midway (D32)', async () => {
    await office.admin.post(`${endpoint.path}/disable`);
    const { ms, answer } = await timed(() =>
      office.admin.post(`${endpoint.path}/enable`, { failed: 'resend' }),
    );
    expect(answer.body.data).toMatchObject({ status: 'enabled' });
    console.log(`enabled after ${ms.toFixed(0)} ms`);
    expect(await numberOf(RESENT)).toBeLessThanOrEqual(AT_ONCE);
    // Disable it again, so that resent deliveries are held and not sent during the test.
    await office.admin.post(`${endpoint.path}/disable`);
    // Slow down each step, so that the kill comes between steps.
    await office.database.pool.query(`
      CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(2); RETURN NULL; END';
      CREATE TRIGGER take_time AFTER UPDATE OF created ON webhook_backlog_jobs
        FOR EACH STATEMENT EXECUTE FUNCTION take_time()`);
    await startWorker();
    await eventually('some are resent', async () => (await numberOf(RESENT)) > AT_ONCE);
    await worker!.kill();
    const before = await numberOf(RESENT);
    expect(before).toBeLessThan(DELIVERIES);
    await office.database.pool.query('DROP FUNCTION take_time() CASCADE');
    await startWorker();
    await eventually('all are resent', async () => (await numberOf(RESENT)) === DELIVERIES);
    const running = `SELECT count(*)::int AS n FROM webhook_backlog_jobs WHERE endpoint_id = $1 AND status = 'running'`;
    await eventually('the job is done', async () => (await numberOf(running)) === 0);
    expect(
      await numberOf(
        `SELECT count(DISTINCT event_id)::int AS n FROM webhook_deliveries WHERE endpoint_id = $1 AND kind = 'resend'`,
      ),
    ).toBe(DELIVERIES);
    const audit = await office.admin.get(
      `/internal/v1/audit-log?subject_id=${endpoint.id}&action=webhook_endpoint.backlog_settled`,
    );
    expect(audit.body.data[0].details).toEqual({ resent: DELIVERIES });
  });

  it('resends everything although it is disabled and enabled again before it is done (D32)', async () => {
    worker!.freeze();
    await office.admin.post(`${endpoint.path}/disable`);
    await office.admin.post(`${endpoint.path}/enable`, { failed: 'resend' });
    await office.admin.post(`${endpoint.path}/disable`);
    await office.admin.post(`${endpoint.path}/enable`);
    await office.admin.post(`${endpoint.path}/disable`);
    expect(await numberOf(RESENT)).toBeLessThan(DELIVERIES);
    worker!.thaw();
    await eventually('all are resent', async () => (await numberOf(RESENT)) === DELIVERIES);
  });

  it('starts their replay at once, and counts them in steps, even if the worker is killed midway (D33)', async () => {
    const started = await timed(() =>
      office.admin.post(`${endpoint.path}/replay`, { since: '2026-01-01T00:00:00Z', statuses: ['failed'] }),
    );
    expect(started.answer.status).toBe(202);
    const { id, total } = started.answer.body.data as { id: string; total: number };
    console.log(`replay started after ${started.ms.toFixed(0)} ms`);
    expect(total).toBeLessThanOrEqual(AT_ONCE);
    const tracked = async () =>
      (await office.admin.get(`/internal/v1/replays/${id}`)).body.data as { total: number; status: string };
    await eventually('more are counted', async () => (await tracked()).total > AT_ONCE);
    await worker!.kill();
    await startWorker();
    await eventually('all are counted', async () => (await tracked()).total === DELIVERIES);
    const canceled = await timed(() => office.admin.post(`/internal/v1/replays/${id}/cancel`));
    expect(canceled.answer.body.data.status).toBe('canceled');
    console.log(`canceled after ${canceled.ms.toFixed(0)} ms`);
  });
});
