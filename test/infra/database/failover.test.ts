import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectProblem } from '../../harness/expect-problem.js';
import { DatabaseProxy } from '../../../chaos/database-proxy.js';
import { eventually, startTestService, type TestPartner, type TestService } from '../../harness/index.js';
import { orderEnded, placeOrder } from '../../harness/order-steps.js';
import { StandbyPair } from './standby-pair.js';

const ORDER = { package_id: 'pkg_fr_1gb_7d', quantity: 1 };
/** Calls that may hit one of the remaining sessions. */
const FEW = 3;
const ROUNDS = 5;
/** The service replaces its sessions at most every five seconds. */
const AFTER_REPLACEMENT_MS = 6_000;

let pair: StandbyPair;
let proxy: DatabaseProxy;
let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  pair = await StandbyPair.create();
  proxy = await DatabaseProxy.start(pair.url);
  const database = { url: proxy.url, pool: pair.pool, drop: () => Promise.resolve() };
  service = await startTestService({ database });
  partner = await service.createPartner();
});
afterAll(async () => {
  await service.stop();
  await proxy.stop();
  await pair.drop();
});

const readiness = () => service.admin.get('/readyz');

/** Makes pool sessions read-only, as a failover does. */
async function turnReadOnly(pool: Pool, count: number): Promise<void> {
  const clients: PoolClient[] = [];
  for (let nth = 0; nth < count; nth++) clients.push(await pool.connect());
  for (const client of clients) {
    // The service closes its sessions once it finds a read-only one, which may be while they turn.
    await client.query('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY').then(
      () => client.release(),
      (error: Error) => client.release(error),
    );
  }
}

describe('a failover of the database', () => {
  it('costs a few calls and no restart when it leaves read-only sessions behind', async () => {
    const { pools, queue } = service.process.resources;
    const seen = new Set<number>();
    // A background statement may find the read-only sessions first, and then no call fails: try again.
    for (let round = 0; round < ROUNDS && !seen.has(503); round++) {
      if (round > 0) await sleep(AFTER_REPLACEMENT_MS);
      for (const pool of [...pools, queue.options as unknown as Pool]) await turnReadOnly(pool, 3);
      let refused = 0;
      for (let nth = 0; nth < 40; nth++) {
        const { status } = await partner.sandbox.post('/v1/orders', ORDER);
        seen.add(status);
        if (status === 503) refused++;
        await sleep(25);
      }
      expect(refused).toBeLessThanOrEqual(FEW);
    }
    expect(seen).toEqual(new Set([202, 503]));
    const { id } = await placeOrder(partner.sandbox, ORDER);
    expect((await orderEnded(partner.sandbox, id as string))['status']).toBe('issued');
  });

  it('shows in /readyz while connections lead to a standby, and clears afterwards', async () => {
    proxy.leadTo(pair.standbyUrl);
    proxy.reset();
    await eventually('it is not ready', async () => {
      const { status, text } = await readiness();
      return status === 503 && text === 'the database is read-only\n';
    });
    expectProblem(await partner.sandbox.post('/v1/orders', ORDER), 503, 'service_unavailable');

    proxy.leadTo(pair.url);
    // Nothing resets them: sessions with the standby continue and are read-only.
    const { id } = await eventually('an order is taken', async () => {
      const { status, body } = await partner.sandbox.post('/v1/orders', ORDER);
      return status === 202 && (body.data as { id: string });
    });
    await eventually('it is ready', async () => (await readiness()).status === 200);
    expect((await orderEnded(partner.sandbox, id))['status']).toBe('issued');
  });
});
