import type { PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  type HttpClient,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { expectWholeFeed, Poller } from './feed-late-commits-poller.js';
import { writeOutOfOrder } from './feed-late-commits-writers.js';
import { recordEvents, registerEndpoint } from './support.js';

const DEATHS = 3;
/** Any numbers; they name the gates below. */
const GATES = { worker: 4_711, api: 4_712 };
type Gate = keyof typeof GATES;

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
  // Whoever gives positions waits at its gate, after it has taken the numbers and before it can commit them; as long as a
  // test holds it there, which may be longer than the service waits for a lock.
  await office.database.pool.query(`
    CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = '2min' AS $body$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(CASE current_setting('application_name')
        WHEN 'partner-esim-worker' THEN ${GATES.worker} ELSE ${GATES.api} END);
      RETURN NULL;
    END $body$;
    CREATE TRIGGER wait_at_gate AFTER UPDATE OF position ON events
      FOR EACH STATEMENT EXECUTE FUNCTION wait_at_gate();
  `);
});
afterAll(async () => {
  await Promise.all([api?.kill(), worker?.kill()]);
  await receiver.close();
  await office.stop();
});

async function whileGateIsShut(gate: Gate, work: () => Promise<void>): Promise<void> {
  const client: PoolClient = await office.database.pool.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [GATES[gate]]);
    await work();
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [GATES[gate]]);
    client.release();
  }
}

/** Waits until somebody of this role waits for a lock while it gives positions. */
async function isCaught(role: Gate): Promise<void> {
  await eventually(`the ${role} is giving positions`, async () => {
    const { rows } = await office.database.pool.query(
      `SELECT 1 FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'partner-esim-' || $1 AND wait_event_type = 'Lock'`,
      [role],
    );
    return rows.length > 0;
  });
}

async function newPartner(): Promise<{ readonly partnerId: string; readonly partnerApi: HttpClient }> {
  const { id: partnerId, sandboxKey } = await office.createPartner();
  await registerEndpoint(office, partnerId, { url: receiver.url });
  return { partnerId, partnerApi: api.partnerApi(sandboxKey) };
}

describe('a worker that dies between giving positions and their commit', () => {
  it('leaves no hole and no event twice: what it had begun is given again', async () => {
    const { partnerId, partnerApi } = await newPartner();
    const poller = new Poller(partnerApi);
    for (let death = 1; death <= DEATHS; death++) {
      await poller.catchUp();
      const before = poller.seen.length;
      let writing = Promise.resolve();
      await whileGateIsShut('worker', async () => {
        writing = writeOutOfOrder(office, partnerId);
        await isCaught('worker');
        await worker.kill();
      });
      await poller.readDuring(writing);
      expect(poller.seen.length).toBeGreaterThan(before);
      await worker.restart();
    }
    await expectWholeFeed(poller, { database: office.database, partnerId, api: partnerApi, receiver });
  });
});

describe('a reader that gives positions at the same time as a worker', () => {
  it('changes none that another reader has seen', async () => {
    const { partnerId, partnerApi } = await newPartner();
    const poller = new Poller(partnerApi);
    let other = Promise.resolve();
    await whileGateIsShut('api', async () => {
      await whileGateIsShut('worker', async () => {
        await recordEvents(office, [{ partnerId }, { partnerId }]);
        await isCaught('worker');
        other = new Poller(partnerApi).catchUp();
        await isCaught('api');
      });
      // A reader that came sooner would give positions, too, and wait at the gate of its process.
      await eventually('the worker has committed', async () => {
        const { rows } = await office.database.pool.query(
          'SELECT 1 FROM events WHERE partner_id = $1 AND position IS NOT NULL',
          [partnerId],
        );
        return rows.length === 2;
      });
      await poller.catchUp();
      expect(poller.seen).toHaveLength(2);
    });
    await other;
    await poller.catchUp();
    expect(poller.seen).toHaveLength(2);
  });
});
