import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import type { Json } from '../harness/order-steps.js';
import { RoleChild } from '../harness/role-child.js';
import { TableLock } from '../live/table-lock.js';
import { TOPUP_1GB_7D, topupEnded } from './topup-steps.js';

const ENV = { SWEEP_INTERVAL_MS: '50', LEASE_MS: '4000' };

let database: TestDatabase;
let office: TestService;
let front: TestService;
let worker: RoleChild;
let api: HttpClient;
let device: EsimDevice;
let esimId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  [office, front, worker] = await Promise.all([
    startTestService({ role: 'admin', database, env: ENV }),
    startTestService({ role: 'api', database, env: ENV }),
    RoleChild.start({ role: 'worker', database, env: ENV }),
  ]);
  api = front.partnerApi((await office.createPartner()).sandboxKey);
  device = new EsimDevice(api);
});

/** An active eSIM with a rule, and no worker. */
beforeEach(async () => {
  esimId = await device.activeEsim();
  const { price } = (await api.get(`/v1/catalog/${TOPUP_1GB_7D}`)).body.data as Json;
  const body = { at_percent: 80, package_id: TOPUP_1GB_7D, max_times: 3, max_price: price };
  expect((await api.call('PUT', `/v1/esims/${esimId}/auto-topup`, { body })).status).toBe(200);
  await worker.kill();
});

afterAll(async () => {
  await worker.kill();
  await Promise.all([front.stop(), office.stop()]);
  await database.drop();
});

/** Starts a worker and expects that the crossing gets one top-up, which completes. */
async function expectOneTopup(): Promise<void> {
  await worker.restart();
  // A crossing whose try failed waits for a minute.
  await database.pool.query('UPDATE esim_auto_topups SET due_at = now() WHERE due_at IS NOT NULL');
  const path = `/v1/topups?esim_id=${esimId}`;
  const [topup] = await eventually('the top-up is placed', async () => {
    const topups = (await api.get(path)).body.data as Json[];
    return topups.length > 0 ? topups : null;
  });
  expect(await topupEnded(api, topup!['id'] as string)).toMatchObject({ status: 'completed', auto: true });
  await eventually('the crossing has ended', async () => {
    const { rows } = await database.pool.query('SELECT FROM esim_auto_topups WHERE due_at IS NOT NULL');
    return rows.length === 0;
  });
  expect((await api.get(path)).body.data).toHaveLength(1);
  expect((await api.get(`/v1/esims/${esimId}/auto-topup`)).body.data).toMatchObject({ times_used: 1 });
}

/** The worker dies at the first statement like `pattern` that waits for the table. */
async function dieAt(table: string, pattern: string): Promise<void> {
  const lock = await TableLock.take(database, table);
  // A worker reports that it is ready before it touches the table, or waits with its claims for it.
  const started = worker.restart();
  started.catch(() => null);
  await lock.waitsFor(pattern);
  await worker.kill();
  await lock.release();
}

describe('a crossing gets exactly one top-up when the worker dies', () => {
  it('before it has seen the crossing', async () => {
    await device.played(esimId, 'consume', { percent: 80 });
    await expectOneTopup();
  });

  it('before it has stored the top-up', async () => {
    await device.played(esimId, 'consume', { percent: 80 });
    await dieAt('topups', '%count(*)%');
    await expectOneTopup();
  });

  it('after it has stored the top-up, but before it has ended the crossing', async () => {
    await device.played(esimId, 'consume', { percent: 80 });
    // Reads are free: only the end of the crossing waits.
    await database.pool.query(`
      CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$;
      CREATE TRIGGER wait_for_test BEFORE UPDATE ON esim_auto_topups FOR EACH ROW EXECUTE FUNCTION wait_for_test()`);
    const holder = await database.pool.connect();
    try {
      await holder.query('BEGIN; SELECT pg_advisory_xact_lock(4711)');
      await worker.restart();
      await eventually('the end of the crossing waits', async () => {
        const { rows } = await database.pool.query(
          `SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        );
        return rows.length > 0;
      });
      await worker.kill();
    } finally {
      await holder.query('ROLLBACK');
      holder.release();
    }
    await database.pool.query(
      'DROP TRIGGER wait_for_test ON esim_auto_topups; DROP FUNCTION wait_for_test()',
    );
    await expectOneTopup();
  });

  it('after the end of the crossing, before anything buys the top-up', async () => {
    await device.played(esimId, 'consume', { percent: 80 });
    const lock = await TableLock.take(database, 'sandbox_upstream_topups');
    await worker.restart();
    await lock.waiters(1);
    await worker.kill();
    await lock.release();
    await expectOneTopup();
  });
});
