import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { LiveProvider, ProviderPackage } from '../../src/providers/index.js';
import { CatalogBench } from './catalog-bench.js';
import { offer, offers } from './scripted-provider.js';

/** No text of PostgreSQL's has it. */
const REFUSED = 'NUL \u0000';
const DEARER = { cost: { micros: 2_000_000, currency: 'USD' } };

let bench: CatalogBench;

beforeAll(async () => {
  bench = await CatalogBench.open();
});
afterEach(() => bench.startAfresh());
afterAll(() => bench.close());

describe('a package of a list that PostgreSQL refuses (D43)', () => {
  it('is not sold, and keeps no other from being stored', async () => {
    bench.esimAccess.packages = offers('A', 5);
    const worker = await bench.startWorker({ LIVE_MARGIN_BPS: '0' });
    await worker.runIfDue();
    bench.esimAccess.packages = offers('A', 6, DEARER);
    bench.esimAccess.change('A3', { title: REFUSED });
    expect(await bench.sync(worker)).toMatchObject({
      status: 'completed',
      result: { esim_access: { listed: 5, changed: 5, withdrawn: 1 } },
    });
    expect(await bench.available()).toEqual(['A1', 'A2', 'A4', 'A5', 'A6'].map((id) => `pkg_a_${id}`));
    expect((await bench.history('pkg_a_A1')).at(-1)).toEqual([2_000_000, 200, true]);
    expect((await bench.history('pkg_a_A3')).at(-1)).toEqual([1_000_000, 100, false]);

    bench.esimAccess.change('A3', { title: 'Mended' });
    await bench.sync(worker);
    expect(await bench.available()).toContain('pkg_a_A3');
  });

  it('does not keep one from being sold that looks the same and costs more', async () => {
    bench.esimAccess.packages = [offer('A', { title: 'Same' }), offer('B', { title: 'Same', ...DEARER })];
    const worker = await bench.startWorker();
    await worker.runIfDue();
    expect(await bench.available()).toEqual(['pkg_a_A']);
    // The cost is no part of the look.
    bench.esimAccess.change('A', { cost: { micros: 1, currency: 'USD' } });
    await bench.database.pool.query(
      `ALTER TABLE package_sources ADD CONSTRAINT poisoned CHECK (cost_micros <> 1) NOT VALID`,
    );
    try {
      await bench.sync(worker);
      expect(await bench.available()).toEqual(['pkg_a_B']);
    } finally {
      await bench.database.pool.query('ALTER TABLE package_sources DROP CONSTRAINT poisoned');
    }
  });

  it('is no reason to withdraw anything when most of the list is refused', async () => {
    bench.esimAccess.packages = offers('A', 5);
    const worker = await bench.startWorker();
    await worker.runIfDue();
    const sold = await bench.available();
    bench.esimAccess.packages = [...offers('A', 2), ...offers('B', 3, { title: REFUSED })];
    expect(await bench.sync(worker)).toMatchObject({
      status: 'failed',
      result: { esim_access: { error: 'catalog_shrank' } },
    });
    expect(await bench.available()).toEqual(sold);
  });

  it('keeps no other top-up from its new price', async () => {
    const topups = offers('T', 3, { kind: 'topup' });
    bench.esimAccess.packages = [offer('A'), ...topups];
    await (await bench.startWorker()).runIfDue();
    const dearer = offers('T', 3, { kind: 'topup', ...DEARER });
    dearer[1] = { ...dearer[1]!, title: REFUSED };
    const worker = await bench.startWorker({}, [withPrices(bench.esimAccess.asLiveProvider(), dearer)]);
    const { result } = await bench.sync(worker);
    expect(result['esim_access']).not.toHaveProperty('warning');
    const costs = ['T1', 'T2', 'T3'].map(async (id) => (await bench.history(`pkg_a_topup_${id}`)).at(-1)![0]);
    expect(await Promise.all(costs)).toEqual([2_000_000, 1_000_000, 2_000_000]);
  });
});

/** The same provider with a list of prices behind its list of everything. */
function withPrices(provider: LiveProvider, packages: readonly ProviderPackage[]): LiveProvider {
  const readPage = () => Promise.resolve({ packages, next: null });
  const prices = { says: 'prices', kinds: ['topup'], pageTimeoutMs: 60_000, readPage } as const;
  return { ...provider, listPackages: () => [...provider.listPackages(), prices] };
}
