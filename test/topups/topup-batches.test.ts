import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderTopupState } from '../../src/providers/index.js';
import { eventually } from '../harness/index.js';
import { type Json } from '../harness/order-steps.js';
import { PRICE, ScriptedShop } from './scripted-shop.js';
import { GB } from './topup-steps.js';

const DONE: ProviderTopupState = { state: 'completed', totalBytes: null, expiresAt: null };
const REFUSED: ProviderTopupState = {
  state: 'rejected',
  failure: { code: 'provider_rejected', reason: 'No.' },
};
/** No column takes so many bytes: whatever transaction has it fails. */
const POISONED: ProviderTopupState = { ...DONE, totalBytes: Number.MAX_VALUE };
const COUNT = 6;

let shop: ScriptedShop;
let ids: string[];
let held: ((state: ProviderTopupState) => void)[];
/** Of the eSIM before its top-ups were accepted. */
let totalBefore: number;
let postedBefore: number;

beforeAll(async () => {
  shop = await ScriptedShop.open(100 * PRICE);
});

afterAll(() => shop.close());

beforeEach(async () => {
  totalBefore = await totalBytes();
  [postedBefore] = await shop.balance();
  held = [];
  ids = [];
  for (let nth = 0; nth < COUNT; nth++) {
    // Who looks a second time hears nothing.
    const silent = () => new Promise<never>(() => undefined);
    const topup = await shop.accept([() => new Promise((resolve) => (held[nth] = resolve)), silent]);
    ids.push(topup.id);
  }
  await eventually('every call is under way', () => Object.keys(held).length === COUNT);
});

async function totalBytes(): Promise<number> {
  const { rows } = await shop.database.pool.query<{ total: string }>(
    'SELECT total_bytes::text AS total FROM esims WHERE id = $1',
    [shop.esimId],
  );
  return Number(rows[0]!.total);
}

/** The rows of top-ups once they have ended. */
async function allEnded(some: readonly string[]): Promise<Json[]> {
  return eventually('they end', async () => {
    const rows = await Promise.all(some.map((id) => shop.row(id)));
    return rows.some((row) => row['status'] === 'processing') ? null : rows;
  });
}

async function transactionsOf(some: readonly string[]): Promise<number> {
  const { rows } = await shop.database.pool.query(
    'SELECT DISTINCT xmin::text FROM topups WHERE id = ANY ($1)',
    [some],
  );
  return rows.length;
}

async function eventsOf(id: string): Promise<number> {
  const { rows } = await shop.database.pool.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM events WHERE body::jsonb -> 'data' ->> 'topup_id' = $1`,
    [id],
  );
  return rows[0]!.n;
}

describe('top-ups of one eSIM whose provider answers at the same time', () => {
  it('end in one transaction, each applied, charged and announced once, a refused one among them', async () => {
    held.forEach((answer, nth) => answer(nth === 2 ? REFUSED : DONE));
    const rows = await allEnded(ids);
    expect(rows.map((row) => row['status'])).toEqual(
      ids.map((_, nth) => (nth === 2 ? 'failed' : 'completed')),
    );
    expect(await transactionsOf(ids)).toBe(1);
    expect(await totalBytes()).toBe(totalBefore + 5 * GB);
    expect(await shop.balance()).toEqual([postedBefore - 5 * PRICE, 0, postedBefore - 5 * PRICE]);
    expect(await Promise.all(ids.map(eventsOf))).toEqual(Array(COUNT).fill(1));
  });

  it('end but for one whose fence is another, and one that the database does not take', async () => {
    const [lost, sick, ...others] = ids as [string, string, ...string[]];
    await shop.database.pool.query(
      `UPDATE topups SET fence = fence + 1, lease_until = now() + interval '1 hour' WHERE id = $1`,
      [lost],
    );
    held.forEach((answer, nth) => answer(nth === 0 ? REFUSED : nth === 1 ? POISONED : DONE));
    expect((await allEnded(others)).map((row) => row['status'])).toEqual(Array(4).fill('completed'));
    const row = await eventually('the one that is not taken is given back', async () => {
      const one = await shop.row(sick);
      return one['last_error'] === null ? null : one;
    });
    expect(row).toMatchObject({ status: 'processing', last_error: 'QueryFailedError' });
    expect(await shop.row(lost)).toMatchObject({ status: 'processing', failure_code: null });
    expect(await totalBytes()).toBe(totalBefore + 4 * GB);
    const posted = postedBefore - 4 * PRICE;
    expect(await shop.balance()).toEqual([posted, 2 * PRICE, posted - 2 * PRICE]);
    expect(await Promise.all([lost, sick].map(eventsOf))).toEqual([0, 0]);
  });
});
