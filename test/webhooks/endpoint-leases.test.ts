import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { recordEvents, registerEndpoint } from './support.js';

const PARTNERS = 3;
const ENDPOINTS = 60;
/** Nobody loses an endpoint by the clock. */
const ENV = { LEASE_MS: '120000', SWEEP_INTERVAL_MS: '500' };

let office: TestService;
let receiver: TestReceiver;
const workers: RoleChild[] = [];
const partners: string[] = [];

beforeAll(async () => {
  office = await startTestService({ role: 'admin', env: ENV });
  receiver = await startReceiver();
  for (let nth = 0; nth < PARTNERS; nth++) {
    const { id } = await office.createPartner();
    partners.push(id);
    for (let each = 0; each < ENDPOINTS / PARTNERS; each++)
      await registerEndpoint(office, id, { url: `${receiver.url}/${nth}/${each}` });
  }
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
  // What they had is free, as after the time of a lease.
  await office.database.pool.query('UPDATE webhook_endpoint_leases SET owner = NULL, until = NULL');
});
afterAll(async () => {
  await receiver.close();
  await office.stop();
});

async function startWorker(): Promise<RoleChild> {
  const worker = await RoleChild.start({ role: 'worker', database: office.database, env: ENV });
  workers.push(worker);
  return worker;
}

/** How many endpoints each worker owns, by its process id. */
async function owned(): Promise<ReadonlyMap<number, number>> {
  const { rows } = await office.database.pool.query<{ pid: number; count: number }>(
    `SELECT split_part(owner, '-', 1)::int AS pid, count(*)::int AS count FROM webhook_endpoint_leases
     WHERE owner IS NOT NULL GROUP BY 1`,
  );
  return new Map(rows.map(({ pid, count }) => [pid, count]));
}

/** An event for each endpoint, again and again, while `work` is done. */
async function underLoad(work: () => Promise<void>): Promise<void> {
  let isDone = false;
  const load = (async () => {
    while (!isDone) {
      await recordEvents(
        office,
        partners.map((partnerId) => ({ partnerId })),
      );
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  try {
    await work();
  } finally {
    isDone = true;
    await load;
  }
}

async function expectAllDeliveredOnce(): Promise<void> {
  await eventually('nothing is owed', async () => {
    const { rows } = await office.database.pool.query('SELECT 1 FROM webhook_deliveries_open LIMIT 1');
    return rows.length === 0;
  });
  const { rows } = await office.database.pool.query(
    `SELECT count(*)::int AS n FROM webhook_deliveries WHERE status <> 'delivered' OR attempt_count <> 1`,
  );
  expect(rows[0].n).toBe(0);
}

describe('the endpoints of several workers', () => {
  it('are shared with a worker that joins under load, and nothing is sent twice for it', async () => {
    await startWorker();
    await underLoad(async () => {
      await eventually('the first has all', async () => [...(await owned()).values()].includes(ENDPOINTS));
      for (const joins of ['second', 'third']) {
        const { pid } = await startWorker();
        const startedAt = performance.now();
        const fair = Math.floor(ENDPOINTS / workers.length);
        await eventually(
          `the ${joins} has its share`,
          async () => ((await owned()).get(pid) ?? 0) >= fair * 0.8,
        );
        console.log(`the ${joins} had its share after ${Math.round(performance.now() - startedAt)} ms`);
      }
      expect([...(await owned()).values()].reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(
        ENDPOINTS,
      );
    });
    await expectAllDeliveredOnce();
  });

  it('are free at once when their worker stops: another goes on long before the lease would lapse', async () => {
    const first = await startWorker();
    await recordEvents(
      office,
      partners.map((partnerId) => ({ partnerId })),
    );
    await eventually('it has all', async () => (await owned()).get(first.pid) === ENDPOINTS);
    await expectAllDeliveredOnce();
    await first.stop();
    expect((await owned()).get(first.pid)).toBeUndefined();
    const { pid } = await startWorker();
    await recordEvents(
      office,
      partners.map((partnerId) => ({ partnerId })),
    );
    await eventually('the other has all', async () => (await owned()).get(pid) === ENDPOINTS);
    await expectAllDeliveredOnce();
  });
});
