import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/common/ids.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { redisMissing, startRedis, type TestRedis } from '../harness/redis.js';
import { deliveryThat, recordEvent, registerEndpoint } from './support.js';

const missing = redisMissing();
if (missing) console.warn(`signals over Redis are not tested: ${missing}`);

/** Anything that arrives sooner was triggered by a signal, not by a sweep. */
const NO_SWEEP = { SWEEP_INTERVAL_MS: '60000' };
const WITHIN_MS = 30_000;
/** Enough for all waits of a test. */
const TEST_MS = 10 * WITHIN_MS;

describe.each([
  ['PostgreSQL', null],
  ['Redis', missing],
])('a signal over %s (D51)', (backend, reason) => {
  describe.skipIf(reason !== null)(`(${backend} is available)`, () => {
    let redis: TestRedis | null = null;
    /** Records events and has no worker. */
    let office: TestService;
    let partner: TestPartner;
    let receiver: TestReceiver;
    const workers: TestService[] = [];
    /**
     * The listening connection of the last worker. PostgreSQL identifies it by its last statement, which changes later.
     */
    let listener: string;

    beforeAll(async () => {
      redis = backend === 'Redis' ? await startRedis() : null;
      office = await startTestService({ role: 'admin', env: urls() });
      await startWorker(NO_SWEEP);
    });
    beforeEach(async () => {
      partner = await office.createPartner();
      receiver = await startReceiver();
      await registerEndpoint(office, partner.id, { url: receiver.url });
    });
    afterEach(() => receiver.close());
    afterAll(async () => {
      for (const worker of workers) await worker.stop();
      await office.stop();
      await redis?.kill();
    });

    const urls = (): Record<string, string> => (redis ? { REDIS_URL: redis.url } : {});

    /** The server processes that receive signals. */
    async function listeners(): Promise<readonly string[]> {
      if (redis) {
        const client = new Redis(redis.url);
        const list = String(await client.client('LIST'));
        client.disconnect();
        return [...list.matchAll(/id=(\d+) .* sub=1 /g)].map((match) => match[1]!);
      }
      const { rows } = await office.database.pool.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN partner_esim_work' AND datname = current_database()`,
      );
      return rows.map(({ pid }) => String(pid));
    }

    async function cut(connection: string): Promise<void> {
      if (!redis)
        return void (await office.database.pool.query('SELECT pg_terminate_backend($1)', [connection]));
      const client = new Redis(redis.url);
      await client.client('KILL', 'ID', connection);
      client.disconnect();
    }

    async function startWorker(env: Record<string, string>): Promise<void> {
      const before = await listeners();
      const started = { role: 'worker', database: office.database, env: { ...urls(), ...env } } as const;
      workers.push(await startTestService(started));
      listener = await eventually('it listens', async () =>
        (await listeners()).find((each) => !before.includes(each)),
      );
    }

    it(
      'triggers a delivery by the worker of another process, and leaves no job in the queue',
      { timeout: TEST_MS },
      async () => {
        for (let nth = 1; nth <= 3; nth++) {
          await recordEvent(office, { partnerId: partner.id });
          await eventually('it is sent', () => receiver.received.length === nth, WITHIN_MS);
        }
        const { rows } = await office.database.pool.query('SELECT 1 FROM bullmq.job');
        expect(rows).toEqual([]);
      },
    );

    it('is received again after its connection was lost', { timeout: TEST_MS }, async () => {
      const lost = listener;
      await cut(lost);
      await eventually('another connection listens', async () => {
        const now = await listeners();
        return now.some((each) => each !== lost);
      });
      await recordEvent(office, { partnerId: partner.id });
      await eventually('the event is sent', () => receiver.received.length === 1, WITHIN_MS);
    });

    it(
      'reaches all workers, and others claim when the first one is dead or frozen',
      { timeout: TEST_MS },
      async () => {
        // This connection announces itself as a worker and does nothing. It looks busy, so that nobody hands it endpoints:
        // only a sweep would find them again.
        const text = JSON.stringify({ from: 'frozen', works: { 'delivery-jobs': 1_000 } });
        const client = redis ? new Redis(redis.url) : null;
        for (let nth = 1; nth <= 8; nth++) {
          if (client) await client.publish('partner_esim_work', text);
          else await office.database.pool.query(`SELECT pg_notify('partner_esim_work', $1)`, [text]);
          const other = await startReceiver();
          const endpoint = await registerEndpoint(office, partner.id, { url: other.url });
          await recordEvent(office, { partnerId: partner.id });
          await deliveryThat(
            office,
            endpoint,
            'is delivered',
            ({ status }) => status === 'delivered',
            WITHIN_MS,
          );
          await other.close();
        }
        client?.disconnect();
      },
    );

    it('is backed up by the sweep when it is lost', { timeout: TEST_MS }, async () => {
      await startWorker({ SWEEP_INTERVAL_MS: '250' });
      // Records an event like `record`, in a process that dies before it notifies.
      await office.database.pool.query(
        `WITH event AS (
           INSERT INTO events (id, partner_id, mode, type, body, created_at)
           VALUES ($1, $2, 'sandbox', 'esim.activated', '{}', now()) RETURNING *
         )
         INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                         next_attempt_at)
         SELECT $3, w.id, e.partner_id, e.mode, e.id, e.type, 'event', 'pending', now()
         FROM event e JOIN webhook_endpoints w ON w.partner_id = e.partner_id`,
        [newId('evt'), partner.id, newId('dlv')],
      );
      await eventually('the event is sent', () => receiver.received.length === 1, WITHIN_MS);
    });
  });
});
