import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { expectProblem } from '../harness/expect-problem.js';

const PACKAGE = 'pkg_fr_1gb_7d';

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService({
    env: {
      DATABASE_STATEMENT_TIMEOUT_MS: '6000',
      DATABASE_STATEMENT_TIMEOUT_ADMIN_MS: '31000',
      DATABASE_STATEMENT_TIMEOUT_WORKER_MS: '61000',
    },
  });
  partner = await service.createPartner();
});
afterAll(() => service.stop());

it('cancels a slow statement: 503, nothing changed, and the key stays unused (D43)', async () => {
  const { pool } = service.database;
  await pool.query(`
    CREATE FUNCTION take_long() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END';
    CREATE TRIGGER take_long BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION take_long()`);
  const order = { package_id: PACKAGE, quantity: 1 };
  const options = { idempotencyKey: 'slow-order-0001' };
  const startedAt = performance.now();
  const answer = await partner.sandbox.post('/v1/orders', order, options);
  expectProblem(answer, 503, 'service_unavailable');
  expect(answer.body.retryable).toBe(true);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  const left = await pool.query<{ rows: number }>(
    `SELECT (SELECT count(*) FROM orders)::int
       + (SELECT count(*) FROM idempotency_keys WHERE key = 'slow-order-0001')::int AS rows`,
  );
  expect(left.rows[0]!.rows).toBe(0);
  await pool.query('DROP FUNCTION take_long() CASCADE');
  const again = await partner.sandbox.post('/v1/orders', order, options);
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, null]);
});

it.each([
  ['25006', 'a standby, or one that is kept from writing'],
  ['53100', 'a full disk'],
  ['53200', 'no memory'],
])('returns 503 while PostgreSQL refuses to write, %s: %s', async (code) => {
  const { pool } = service.database;
  await pool.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''${code}''; END';
    CREATE TRIGGER refuse BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION refuse()`);
  const place = () =>
    partner.sandbox.post(
      '/v1/orders',
      { package_id: PACKAGE, quantity: 1 },
      { idempotencyKey: `refused-order-${code}` },
    );
  const answer = await place();
  expectProblem(answer, 503, 'service_unavailable');
  await pool.query('DROP FUNCTION refuse() CASCADE');
  expect((await place()).status).toBe(202);
});

it("applies each role's own statement timeout, even if one process runs all roles", async () => {
  const timeouts = await Promise.all(
    (['api', 'admin', 'worker'] as const).map(async (role) => {
      const { dataSource } = service.process.resources.of(role);
      // Behind a pooler the timeout belongs to each transaction, not to the session.
      return dataSource.transaction(async (manager) => {
        const [row] = await manager.query<{ statement_timeout: string }[]>('SHOW statement_timeout');
        return row!.statement_timeout;
      });
    }),
  );
  expect(timeouts).toEqual(['6s', '31s', '61s']);
});
