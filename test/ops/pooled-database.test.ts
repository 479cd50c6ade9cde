import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { PgBouncer, pgbouncerMissing, SERVER_CONNECTIONS } from '../harness/pgbouncer.js';
import { migrateDatabase } from '../../src/apps/migration.js';
import { Transactions } from '../../src/infra/database/index.js';

const missing = pgbouncerMissing();
if (missing !== null) console.warn(`tests through PgBouncer are skipped: ${missing}`);

describe.skipIf(missing !== null)('the service behind PgBouncer in transaction mode', () => {
  let database: TestDatabase;
  let bouncer: PgBouncer;
  let service: TestService;
  let partner: TestPartner;
  let receiver: TestReceiver;

  beforeAll(async () => {
    database = await createTestDatabase();
    // Parameters that a pooler tracks for its clients may have other defaults.
    await setInDatabase(
      `DateStyle = 'SQL', 'DMY'`,
      `TimeZone = 'Asia/Kathmandu'`,
      'standard_conforming_strings = off',
    );
    bouncer = await PgBouncer.start(database.url);
    receiver = await startReceiver();
    const env = { DATABASE_URL: bouncer.url, DATABASE_DIRECT_URL: database.url };
    service = await startTestService({ database, env: { ...env, DATABASE_STATEMENT_TIMEOUT_MS: '5000' } });
    partner = await service.createPartner();
  });
  afterAll(async () => {
    await service?.stop();
    await bouncer?.stop();
    await receiver?.close();
    await database.drop();
  });

  const alterDatabase = async (change: string): Promise<void> => {
    const name = new URL(database.url).pathname.slice(1);
    await database.pool.query(`ALTER DATABASE ${name} ${change}`);
  };

  async function setInDatabase(...settings: readonly string[]): Promise<void> {
    for (const setting of settings) await alterDatabase(`SET ${setting}`);
  }

  // This test must be first, because a later test changes database settings and sessions opened then stay unusable.
  it('accepts concurrent orders, issues each once and delivers its webhook', async () => {
    const fields = { url: receiver.url, mode: 'sandbox' };
    await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, fields);
    const ids = await Promise.all(
      Array.from({ length: 24 }, async () => {
        const { id } = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d', quantity: 1 });
        return id as string;
      }),
    );
    const told = () =>
      receiver.received.map(({ body }) => (JSON.parse(body) as { data: { order_id: string } }).data.order_id);
    await eventually('every order is issued and told', async () => {
      const { rows } = await database.pool.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM orders WHERE status = 'issued'`,
      );
      return rows[0]!.count === ids.length && new Set(told()).size >= ids.length;
    });
    expect(new Set(told())).toEqual(new Set(ids));
  });

  it('does not start without DATABASE_DIRECT_URL, because the pooler refuses the session settings', async () => {
    const starting = startTestService({ database, env: { DATABASE_URL: bouncer.url } });
    await expect(starting).rejects.toThrow(/unsupported startup parameter/);
  });

  it.each(['transaction', 'session'] as const)(
    'does not start or migrate in %s mode when the pooler drops startup options, and names the fix',
    async (poolMode) => {
      const lenient = await PgBouncer.start(database.url, { poolMode, dropsOptions: true });
      const remedy = /ignore_startup_parameters\), .*\bstatement_timeout\b.* Set DATABASE_DIRECT_URL to/;
      try {
        for (const env of [
          { DATABASE_URL: lenient.url },
          { DATABASE_URL: bouncer.url, DATABASE_DIRECT_URL: lenient.url },
        ])
          await expect(startTestService({ database, env })).rejects.toThrow(remedy);
        await alterDatabase('SET default_transaction_read_only = on');
        await expect(migrateDatabase(lenient.url)).rejects.toThrow(remedy);
      } finally {
        await alterDatabase('RESET default_transaction_read_only');
        await lenient.stop();
      }
    },
  );

  it('does not start with unusable session settings, and names the statements that fix them', async () => {
    const hostile = ['default_transaction_read_only', 'bytea_output', 'search_path', 'transaction_timeout'];
    await setInDatabase(
      `${hostile[0]} = on`,
      `${hostile[1]} = 'escape'`,
      `${hostile[2]} = 'decoy', 'public'`,
      `${hostile[3]} = '5min'`,
    );
    const other = await PgBouncer.start(database.url);
    try {
      const env = { DATABASE_URL: other.url, DATABASE_DIRECT_URL: database.url };
      const failure: unknown = await startTestService({ database, env }).catch((error: unknown) => error);
      expect((failure as Error).message).toMatch(
        /ALTER ROLE CURRENT_USER SET bytea_output = 'hex'; ALTER ROLE CURRENT_USER SET default_transaction_read_only = 'off'; ALTER ROLE CURRENT_USER SET transaction_timeout = '0'; ALTER ROLE CURRENT_USER SET search_path = 'public';/,
      );
    } finally {
      await other.stop();
      for (const name of hostile) await alterDatabase(`RESET ${name}`);
    }
  });

  it('replays a stored response, pages lists and reads the feed', async () => {
    const idempotencyKey = randomUUID();
    const body = { package_id: 'pkg_fr_1gb_7d', quantity: 2 };
    const first = await partner.sandbox.post('/v1/orders', body, { idempotencyKey });
    const again = await partner.sandbox.post('/v1/orders', body, { idempotencyKey });
    expect([first.status, again.text]).toEqual([202, first.text]);
    const page = await partner.sandbox.get('/v1/orders?limit=10');
    expect(page.body).toMatchObject({ has_more: true });
    const feed = await eventually('the feed has events', async () => {
      const answer = await partner.sandbox.get('/v1/events?limit=100');
      return answer.body.data.length >= 24 ? answer : null;
    });
    expect(feed.status).toBe(200);
  });

  it('limits each transaction separately, and leaves no setting to the next user of the session', async () => {
    const { dataSource } = service.process.resources.of('api');
    const slow = new Transactions(dataSource).run((tx) => tx.manager.query('SELECT pg_sleep(10)'));
    await expect(slow).rejects.toThrow(/statement timeout/);
    const ofTypeOrm = dataSource.transaction('REPEATABLE READ', (manager) =>
      manager.query('SELECT pg_sleep(10)'),
    );
    await expect(ofTypeOrm).rejects.toThrow(/statement timeout/);
    const { rows } = await database.pool.query<{ sessions: number }>(
      `SELECT count(*)::int AS sessions FROM pg_stat_activity
       WHERE datname = current_database() AND application_name LIKE 'partner-esim-all%'
         AND application_name NOT LIKE '%-direct'`,
    );
    expect(rows[0]!.sessions).toBeLessThanOrEqual(SERVER_CONNECTIONS);
    const seen = await Promise.all(
      Array.from({ length: 2 * SERVER_CONNECTIONS }, () =>
        dataSource.query<{ timeout: string }[]>(`SELECT current_setting('statement_timeout') AS timeout`),
      ),
    );
    expect(new Set(seen.map(([row]) => row!.timeout))).toEqual(new Set(['0']));
  });

  it('drops old partitions and keeps session locks by bypassing the pooler', async () => {
    const day = new Date(Date.now() - 60 * 86_400_000).toISOString().slice(0, 10);
    const name = `api_calls_p${day.replaceAll('-', '')}`;
    const next = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
    await database.pool.query(
      `CREATE TABLE ${name} PARTITION OF api_calls FOR VALUES FROM ('${day}') TO ('${next}')`,
    );
    // A worker maintains partitions at startup.
    const env = { DATABASE_URL: bouncer.url, DATABASE_DIRECT_URL: database.url };
    const worker = await startTestService({ role: 'worker', database, env });
    try {
      await eventually('the old day is gone', async () => {
        const { rows } = await database.pool.query<{ there: string | null }>(
          'SELECT to_regclass($1) AS there',
          [name],
        );
        return rows[0]!.there === null;
      });
    } finally {
      await worker.stop();
    }
  });
});
