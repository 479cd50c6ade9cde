import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestService, statusOver, type TestPartner, type TestService } from '../harness/index.js';

/**
 * A caller that waits this long for a connection gets 503. Longer than a busy machine needs, shorter than hundreds of
 * lists.
 */
const ENV = { DATABASE_POOL_WAIT_MS: '6000' };

const agent = new Agent({ keepAlive: true });
let service: TestService;
let attacker: TestPartner;
let others: readonly TestPartner[];

beforeAll(async () => {
  service = await startTestService({ env: ENV });
  attacker = await service.createPartner();
  others = await Promise.all(Array.from({ length: 5 }, () => service.createPartner()));
});
afterAll(async () => {
  agent.destroy();
  await service.stop();
});

/** Another partner's calls in the meantime, one after another. */
async function work(partner: TestPartner, until: () => boolean): Promise<readonly number[]> {
  const statuses: number[] = [];
  const paths = ['/v1/me', '/v1/topups', '/v1/balance', '/v1/events'];
  for (let i = 0; i < 4 || !until(); i++) {
    statuses.push((await partner.sandbox.get(paths[i % 4]!)).status);
    await sleep(20);
  }
  return statuses;
}

/**
 * One list call of the attacker, on a separate connection. `fetch` shares one pool, in which the first calls of others
 * would queue behind the flood.
 */
function flood(): Promise<number> {
  const headers = { authorization: `Bearer ${attacker.sandboxKey}` };
  return statusOver(agent, `${service.process.api!.url}/v1/orders`, headers);
}

it("leaves connections for other partners while one partner's lists hang (D43)", async () => {
  const client = await service.database.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('LOCK TABLE orders IN ACCESS EXCLUSIVE MODE');
    let over = false;
    const flooded = Promise.all(Array.from({ length: 40 }, () => flood())).then(
      (answers) => ((over = true), answers),
    );
    const served = await Promise.all(others.map((partner) => work(partner, () => over)));
    expect(served.flat().filter((status) => status !== 200)).toEqual([]);
    const refused = await flooded;
    // The few running lists hit the lock timeout, and the others get a 429 and retry later.
    expect(refused.filter((status) => status === 503).length).toBeLessThanOrEqual(8);
    expect(new Set(refused)).toEqual(new Set([429, 503]));
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
});
