import { describe, expect, it } from 'vitest';
import type { EsimProvider, ProviderRegistry } from '../../src/providers/index.js';
import { bornClaimed, FindOrPlace, type PurchaseJobsRepository } from '../../src/purchases/index.js';
import type { Purchase } from '../../src/purchases/purchase.js';
import type { PlacementNote } from '../../src/purchases/purchase-jobs.repository.js';

const TIMEOUT_MS = 2_500;

/** Places one purchase that was inserted as claimed `waitedMs` ago. Returns what happened, in order. */
async function placeAfter(waitedMs: number): Promise<readonly string[]> {
  const calls: string[] = [];
  const provider = { name: 'sandbox', timeoutMs: TIMEOUT_MS, readLagMs: 0 } as EsimProvider;
  const jobs = {
    markPlaced: (notes: readonly PlacementNote[]) => {
      calls.push('recorded');
      return Promise.resolve(notes.map(() => ({ waitMs: 0, sendWindowStart: performance.now() })));
    },
    clearPlacement: () => Promise.resolve(void calls.push('cleared')),
    touchPlacement: () => Promise.resolve(void calls.push('touched')),
  } as unknown as PurchaseJobsRepository<Purchase>;
  const registry = { findByName: () => provider } as unknown as ProviderRegistry;
  const purchase = { id: 'ord_1', fence: 1, mode: 'sandbox', provider: 'sandbox' } as Purchase;
  await new FindOrPlace(registry, jobs).findOrPlace(bornClaimed(purchase, performance.now() - waitedMs), {
    find: () => Promise.resolve(null),
    place: () => Promise.resolve(void calls.push('placed')),
  });
  return calls;
}

describe('a purchase that was inserted as claimed', () => {
  it('is placed at once', async () => {
    expect(await placeAfter(0)).toEqual(['placed']);
  });

  it('is recorded again and placed, not failed, when it has waited longer than its call may take', async () => {
    expect(await placeAfter(2 * TIMEOUT_MS)).toEqual(['recorded', 'placed']);
  });
});
