import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  startTestService,
  type TestDatabase,
  type TestService,
  waitingForLocks,
} from '../harness/index.js';

let database: TestDatabase;
let worker: TestService | null = null;
let logLines: string[];

beforeAll(async () => {
  database = await createTestDatabase();
  await query(`INSERT INTO partners (id, name, status) VALUES ('ptn_1', 'One', 'active')`);
});
afterAll(() => database.drop());

beforeEach(() => {
  logLines = [];
});
afterEach(async () => {
  await worker?.stop();
  await query('TRUNCATE orders, esims CASCADE');
});

const query = (text: string, values: unknown[] = []) => database.pool.query(text, values);

/** Inserts `count` eSIMs, ids `<name>_1` etc., whose install deadline passed `hoursAgo`. */
async function insertEnded(
  name: string,
  { mode, count, hoursAgo }: { mode: 'live' | 'sandbox'; count: number; hoursAgo: number },
): Promise<void> {
  await query(
    `INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, quantity_issued, unit_price_amount, currency,
                         provider, provider_reference, upstream_package_id, accepted_request_id, validity_days,
                         activation_policy)
     VALUES ($1, 'ptn_1', $2, 'issued', 'pkg_a', 1, 1, 1, 'USD', $2, 'ref_' || $1, 'pkg_a', 'req_1', 1, 'on_install')`,
    [name, mode],
  );
  await query(
    `INSERT INTO esims (id, partner_id, mode, order_id, package_id, iccid, status, profile_status, install_secrets,
                        unlimited, total_bytes, usage_source, validity_days, activation_policy, provider,
                        provider_esim_id, install_by)
     SELECT $1 || '_' || n, 'ptn_1', $2, $1, 'pkg_a', '8910000000000000001', 'issued', 'released', '', false, 1,
            'poll', 1, 'on_install', $2, $1 || '_' || n, now() - $4::int * interval '1 hour'
     FROM generate_series(1, $3::int) AS n`,
    [name, mode, count, hoursAgo],
  );
}

/** Starts after the test has inserted and locked its eSIMs, or they would expire first. */
async function startWorker(): Promise<void> {
  // The shutdown timeout is much longer than one step, so a stop that waits for the whole run is noticed.
  const env = { SHUTDOWN_TIMEOUT_MS: '60000', SWEEP_INTERVAL_MS: '200' };
  worker = await startTestService({ role: 'worker', database, env, logLines });
}

/** Counts of issued and expired eSIMs with this name. */
async function countOf(name: string): Promise<{ issued: number; expired: number }> {
  const { rows } = await query(
    `SELECT count(*) FILTER (WHERE status = 'issued')::int AS issued,
            count(*) FILTER (WHERE status = 'expired')::int AS expired FROM esims WHERE order_id = $1`,
    [name],
  );
  return rows[0] as { issued: number; expired: number };
}

const isExpired = (name: string) => async () => (await countOf(name)).issued === 0;

/** Runs `work` while another session locks the rows of these eSIMs. */
async function withLocked(name: string, work: () => Promise<void>): Promise<void> {
  const holder = await database.pool.connect();
  try {
    await holder.query('BEGIN');
    await holder.query('SELECT 1 FROM esims WHERE order_id = $1 FOR UPDATE', [name]);
    await work();
  } finally {
    await holder.query('ROLLBACK');
    holder.release();
  }
}

describe('an eSIM that cannot be expired', () => {
  it('does not block later ones, even if such eSIMs fill whole batches (D43)', async () => {
    await query(
      `ALTER TABLE esims ADD CONSTRAINT poisoned CHECK (order_id <> 'bad' OR status <> 'expired') NOT VALID`,
    );
    await insertEnded('bad', { mode: 'live', count: 201, hoursAgo: 2 });
    await insertEnded('good', { mode: 'live', count: 3, hoursAgo: 1 });
    await startWorker();
    await eventually('those behind them expire', isExpired('good'));
    expect(await countOf('bad'), 'the refused ones').toEqual({ issued: 201, expired: 0 });
    await insertEnded('later', { mode: 'live', count: 1, hoursAgo: 0 });
    await eventually('the next run comes behind them too', isExpired('later'));
    const named = logLines.filter((line) => line.includes('esim.expiry_failed') && line.includes('poisoned'));
    expect(named.length, 'each in one line, however many runs there are').toBe(201);
    await query('ALTER TABLE esims DROP CONSTRAINT poisoned');
    await eventually('those that can be expired now do', isExpired('bad'));
  });

  it('does not block others while its row is locked', async () => {
    await insertEnded('locked', { mode: 'live', count: 2, hoursAgo: 2 });
    await insertEnded('free', { mode: 'live', count: 3, hoursAgo: 1 });
    await withLocked('locked', async () => {
      await startWorker();
      await eventually('the others expire', isExpired('free'));
      expect(await countOf('locked')).toEqual({ issued: 2, expired: 0 });
    });
    await eventually('they expire when they are free', isExpired('locked'));
  });

  it('does not delay Live if it is in Sandbox, however many such eSIMs there are and whenever they ended (D41)', async () => {
    await insertEnded('sandbox', { mode: 'sandbox', count: 200, hoursAgo: 2 });
    await withLocked('sandbox', async () => {
      // A run over all of these would wait for minutes.
      await startWorker();
      await eventually('the run over them is under way', async () => (await waitingForLocks(database)) > 0);
      await insertEnded('live', { mode: 'live', count: 3, hoursAgo: 1 });
      await eventually('Live expires', isExpired('live'));
      expect(await countOf('sandbox')).toEqual({ issued: 200, expired: 0 });
    });
  });

  it('does not delay a stop, which waits only for the current eSIM', async () => {
    await insertEnded('many', { mode: 'sandbox', count: 200, hoursAgo: 2 });
    await withLocked('many', async () => {
      await startWorker();
      await eventually('the run over them is under way', async () => (await waitingForLocks(database)) > 0);
      const beginMs = performance.now();
      await worker!.stop();
      worker = null;
      // The rest of the run would take 100 s.
      expect(performance.now() - beginMs).toBeLessThan(30_000);
    });
  });
});
