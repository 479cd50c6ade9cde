import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderTopupState } from '../../src/providers/index.js';
import { eventually } from '../harness/index.js';
import { PRICE, ScriptedShop } from './scripted-shop.js';

const REFUSED: ProviderTopupState = {
  state: 'rejected',
  failure: { code: 'provider_rejected', reason: 'Refused, long ago.' },
};
const DONE: ProviderTopupState = { state: 'completed', totalBytes: null, expiresAt: null };

let shop: ScriptedShop;
let answer: (state: ProviderTopupState) => void;
let topupId: string;
/** Posted, held and available before the top-up was accepted. */
let before: [number, number, number];

beforeAll(async () => {
  shop = await ScriptedShop.open(3 * PRICE, { SHUTDOWN_TIMEOUT_MS: '20000' });
});

afterAll(() => shop.close());

beforeEach(async () => {
  await shop.startWorker();
  before = await shop.balance();
  let resolve: ((state: ProviderTopupState) => void) | null = null;
  const { id } = await shop.accept([() => new Promise((done) => (resolve = done))]);
  topupId = id;
  answer = (state) => resolve?.(state);
  await eventually('the call is under way', () => resolve !== null);
});

describe('a late response to a worker that has lost the top-up', () => {
  it.each([
    ['refuse', REFUSED],
    ['complete', DONE],
  ])('does not %s the top-up', async (_, word) => {
    await shop.database.pool.query(
      `UPDATE topups SET fence = fence + 1, lease_until = now() + interval '1 hour' WHERE id = $1`,
      [topupId],
    );
    answer(word);
    await shop.stopWorker();
    expect(await shop.row(topupId)).toMatchObject({ status: 'processing', failure_code: null });
    const [posted, held, available] = before;
    expect(await shop.balance()).toEqual([posted, held + PRICE, available - PRICE]);
  });
});

describe('a worker stop', () => {
  it('waits for the provider call in progress, and records its result', async () => {
    const stopping = shop.stopWorker();
    // Late enough to fail a stop that does not wait, and long before the shutdown timeout.
    setTimeout(() => answer(DONE), 500);
    await stopping;
    expect(await shop.row(topupId)).toMatchObject({ status: 'completed' });
    const [posted, held, available] = before;
    expect(await shop.balance()).toEqual([posted - PRICE, held, available - PRICE]);
  });
});
