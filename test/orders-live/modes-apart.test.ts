import { afterAll, beforeAll, expect, it } from 'vitest';
import { MAGIC_PACKAGES } from '../../src/catalog/index.js';
import { eventually, leastOf } from '../harness/index.js';
import { LiveShop, place, PRICE } from './live-shop.js';

const SANDBOX_ORDERS = 330;
/** A Sandbox order for the package that simulates a lost response holds its slot for this long. */
const SILENCE_MS = 2_500;
/** The default in Sandbox. */
const PER_PARTNER = 16;

let shop: LiveShop;

beforeAll(async () => {
  shop = await LiveShop.open();
});

afterAll(() => shop.close());

it(`processes a paid order without waiting for ${SANDBOX_ORDERS} Sandbox orders of the same partner (D41)`, async () => {
  const buyer = await shop.buyer(10 * PRICE);
  const sandbox = shop.api.partnerApi(await shop.office.createKey(buyer.id, 'sandbox'));
  await shop.startWorker();
  await timeToIssue();
  const alone = await timeToIssue();
  for (let i = 0; i < SANDBOX_ORDERS; i += 10) {
    const order = () => sandbox.post('/v1/orders', { package_id: MAGIC_PACKAGES.timeout, quantity: 1 });
    const answers = await Promise.all(Array.from({ length: 10 }, order));
    expect(answers.map((answer) => answer.status)).toEqual(new Array(10).fill(202));
  }
  await eventually('the Sandbox orders fill their slots', async () => (await leased()) >= PER_PARTNER);
  // A busy machine may delay one of them, but an order that waits for the Sandbox orders is late every time.
  const limitMs = alone + SILENCE_MS / 2;
  const beside = await leastOf(limitMs, timeToIssue, 10);
  console.log(`issued after ${alone.toFixed(0)} ms alone, ${beside.toFixed(0)} ms beside the Sandbox orders`);
  const { rows } = await shop.database.pool.query(
    `SELECT 1 FROM orders WHERE mode = 'sandbox' AND status IN ('pending', 'processing') LIMIT 1`,
  );
  expect(rows, 'Sandbox orders are still waiting').toHaveLength(1);
  // One round of Sandbox orders takes SILENCE_MS, and all of them take 330 / 16 rounds.
  expect(beside).toBeLessThan(limitMs);

  async function timeToIssue(): Promise<number> {
    const startedAt = performance.now();
    const { id } = await place(buyer);
    await eventually(
      'the paid order is issued',
      async () => (await shop.row(id as string)).status === 'issued',
      180_000,
    );
    return performance.now() - startedAt;
  }
}, 300_000);

/** The number of Sandbox orders that a worker is processing, or holds until a slot is free. */
async function leased(): Promise<number> {
  const { rows } = await shop.database.pool.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM orders WHERE mode = 'sandbox' AND lease_until > now()`,
  );
  return rows[0]!.n;
}
