import type { PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { expectWholeFeed, Poller } from './feed-late-commits-poller.js';
import { writeOutOfOrder } from './feed-late-commits-writers.js';
import { registerEndpoint } from './support.js';

const DEATHS = 3;
/** Any number; it names the gate below. */
const GATE = 4_711;

let office: TestService;
let api: RoleChild;
let worker: RoleChild;
let receiver: TestReceiver;

beforeAll(async () => {
  office = await startTestService({ role: 'admin' });
  receiver = await startReceiver();
  const options = { database: office.database, env: { SWEEP_INTERVAL_MS: '50' } };
  [api, worker] = await Promise.all([
    RoleChild.start({ role: 'api', ...options }),
    RoleChild.start({ role: 'worker', ...options }),
  ]);
  // Whoever gives positions waits at this gate, after it has taken the numbers and before it can commit them.
  await office.database.pool.query(`
    CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(${GATE}); RETURN NULL; END';
    CREATE TRIGGER wait_at_gate AFTER UPDATE OF position ON events
      FOR EACH STATEMENT EXECUTE FUNCTION wait_at_gate();
  `);
});
afterAll(async () => {
  await Promise.all([api?.kill(), worker?.kill()]);
  await receiver.close();
  await office.stop();
});

async function whileGateIsShut(work: () => Promise<void>): Promise<void> {
  const client: PoolClient = await office.database.pool.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [GATE]);
    await work();
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [GATE]);
    client.release();
  }
}

async function workerIsAtGate(): Promise<boolean> {
  const { rows } = await office.database.pool.query(
    `SELECT 1 FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'partner-esim-worker'
       AND wait_event = 'advisory' AND query LIKE '%event_positions%'`,
  );
  return rows.length > 0;
}

describe('a worker that dies between giving positions and their commit', () => {
  it('leaves no hole and no event twice: what it had begun is given again', async () => {
    const { id: partnerId, sandboxKey } = await office.createPartner();
    await registerEndpoint(office, partnerId, { url: receiver.url });
    const partnerApi = api.partnerApi(sandboxKey);
    const poller = new Poller(partnerApi);
    for (let death = 1; death <= DEATHS; death++) {
      await poller.catchUp();
      const before = poller.seen.length;
      let writing = Promise.resolve();
      await whileGateIsShut(async () => {
        writing = writeOutOfOrder(office, partnerId);
        await eventually('the worker has given positions', workerIsAtGate);
        await worker.kill();
      });
      await poller.readDuring(writing);
      expect(poller.seen.length).toBeGreaterThan(before);
      await worker.restart();
    }
    await expectWholeFeed(poller, { database: office.database, partnerId, api: partnerApi, receiver });
  }, 90_000);
});
