import type { Logger } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../src/config/index.js';
import { Sweeps } from '../../src/infra/sweeps.js';
import {
  type LiveProvider,
  type ProviderHealthRepository,
  type ProviderPackage,
  ProviderRegistry,
} from '../../src/providers/index.js';
import type { SandboxProvider } from '../../src/providers/sandbox/sandbox-provider.js';
import type { AnnounceChanges } from '../../src/catalog-sync/worker/announce-changes.js';
import type { RefreshTopupFits } from '../../src/catalog-sync/worker/refresh-topup-fits.js';
import type { SyncCatalog } from '../../src/catalog-sync/worker/sync-catalog.js';
import { CatalogSyncJobs } from '../../src/catalog-sync/worker/catalog-sync-jobs.js';
import { eventually, testEnvironment } from '../harness/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import type { Json } from '../harness/order-steps.js';
import { CatalogBench, type SyncWorker } from './catalog-bench.js';
import { offer, offers, ScriptedProvider } from './scripted-provider.js';

/** PostgreSQL cannot store NUL in a text. */
const REFUSED = 'NUL \u0000';
const DEARER = { cost: { micros: 2_000_000, currency: 'USD' } };

let bench: CatalogBench;

beforeAll(async () => {
  bench = await CatalogBench.open();
});

afterEach(() => bench.startAfresh());

afterAll(() => bench.close());

const OLD = { LIVE_MARGIN_BPS: '1000', LIVE_PACKAGE_PROVIDERS: 'FR=none' };
const NEW = { LIVE_MARGIN_BPS: '9000' };

/** The error of the provider's last synchronization, as the portal team sees it. */
async function lastError(name: string): Promise<unknown> {
  const { data } = (await bench.office.admin.get('/internal/v1/providers')).body;
  return (data as Json[]).find((each) => each['name'] === name)!['last_sync_error'];
}

async function syncs(): Promise<[string, number][]> {
  const { rows } = await bench.database.pool.query<{ status: string; attempt: number }>(
    'SELECT status, attempt FROM catalog_syncs ORDER BY requested_at',
  );
  return rows.map(({ status, attempt }) => [status, attempt]);
}

describe('a worker that was frozen in the middle of a synchronization', () => {
  it.each([
    ['its list arrives', undefined],
    ['its list fails', new Error('503')],
  ])('writes nothing once another worker has taken over: %s', async (_, error) => {
    bench.esimAccess.packages = [offer('A')];
    bench.zendit.packages = [offer('Z')];
    const frozen = await bench.startWorker(OLD);
    // The worker queries them concurrently.
    const all = [bench.esimAccess, bench.zendit].map((each) => each.holdNextList());
    const away = frozen.runIfDue();
    await Promise.all(all.map(({ reached }) => reached));
    const next = await bench.startWorker(NEW);
    expect((await bench.office.admin.post('/internal/v1/catalog/sync')).status).toBe(202);
    expect(await next.runIfDue(), 'it may still be at work').toBe(false);
    // The provider's timeout of 2 s, plus half a minute for the database.
    await bench.letPass(33);
    expect(await next.runIfDue(), 'the work is taken over').toBe(true);
    expect(await next.runIfDue(), 'what was asked for meanwhile is done').toBe(true);
    const done = await bench.newest();
    for (const held of all) held.release(error);
    expect(await away).toBe(true);
    expect(await bench.newest()).toEqual(done);
    expect(await syncs()).toEqual([
      ['completed', 2],
      ['completed', 1],
    ]);
    expect(await bench.available()).toEqual(['pkg_a_A', 'pkg_z_Z']);
    expect(await bench.history('pkg_a_A')).toEqual([[1_000_000, 190, true]]);
    expect(await bench.history('pkg_z_Z')).toEqual([[1_000_000, 190, true]]);
  });

  it('continues when no other worker has taken over', async () => {
    bench.esimAccess.packages = [offer('A')];
    const frozen = await bench.startWorker();
    const held = bench.esimAccess.holdNextList();
    const away = frozen.runIfDue();
    await held.reached;
    await bench.letPass(33);
    held.release();
    await away;
    expect(await bench.newest()).toMatchObject({
      status: 'completed',
      result: { esim_access: { listed: 1 } },
    });
  });
});

describe('a failed synchronization', () => {
  it('is retried after a minute by a worker with the same settings, and shows its error until then', async () => {
    bench.esimAccess.packages = [offer('A')];
    const old = await bench.startWorker();
    await old.runIfDue();
    bench.esimAccess.error = new Error('503');
    const changed = await bench.startWorker(NEW);
    expect(await changed.runIfDue()).toBe(true);
    expect(await lastError('esim_access')).toBe('provider_unavailable');
    expect(await lastError('zendit')).toBeNull();
    bench.esimAccess.error = null;
    await bench.letPass(30);
    expect(await changed.runIfDue(), 'not at once').toBe(false);
    await bench.letPass(35);
    expect(await old.runIfDue(), 'not with the old settings').toBe(false);
    expect(await changed.runIfDue()).toBe(true);
    expect(await bench.history('pkg_a_A')).toEqual([
      [1_000_000, 120, true],
      [1_000_000, 190, true],
    ]);
    expect(await lastError('esim_access')).toBeNull();
    await bench.letPass(65);
    expect(await changed.runIfDue(), 'what has not failed is not repeated').toBe(false);
  });

  it.each([
    ['none', 14],
    ['zendit', 14 + 3],
  ])('accepts a list that shrank after its packages were given to %s once', async (other, left) => {
    const topups = offers('T', 14, { kind: 'topup' });
    bench.esimAccess.packages = [...offers('A', 40), ...topups];
    bench.zendit.packages = offers('Z', 3);
    await (await bench.startWorker()).runIfDue();
    bench.esimAccess.packages = [...offers('A', 10), ...topups];
    await bench.sync(await bench.startWorker());
    expect(await lastError('esim_access')).toBe('catalog_shrank');
    await (await bench.startWorker({ LIVE_PACKAGE_PROVIDERS: `*=${other}` })).runIfDue();
    expect(await bench.available()).toHaveLength(left);
    await (await bench.startWorker()).runIfDue();
    expect(await bench.available()).toHaveLength(10 + 14 + 3);
    expect(await lastError('esim_access')).toBeNull();
  });
});

describe('a provider that is not connected', () => {
  it('sells nothing, not even top-ups, until it is connected again', async () => {
    bench.esimAccess.packages = [offer('A')];
    bench.zendit.packages = [offer('Z'), offer('Z', { kind: 'topup' })];
    const everything = ['pkg_a_A', 'pkg_z_Z', 'pkg_z_topup_Z'];
    await (await bench.startWorker()).runIfDue();
    expect(await bench.available()).toEqual(everything);
    const before = await bench.now();
    const version = await bench.version();
    const alone = await bench.startWorker({}, [bench.esimAccess.asLiveProvider()]);
    expect(await alone.runIfDue()).toBe(true);
    expect(await bench.available()).toEqual(['pkg_a_A']);
    expect(await bench.newest()).toEqual({
      status: 'completed',
      result: {
        esim_access: { listed: 1, changed: 0, withdrawn: 0 },
        zendit: { listed: 0, changed: 0, withdrawn: 2 },
      },
    });
    expect(await bench.version(), 'partners are told').toBeGreaterThan(version);
    await bench.package('pkg_z_Z', ({ available }) => available === false);
    expect((await bench.updatedSince(before)).map(([id]) => id).sort()).toEqual(['pkg_z_Z', 'pkg_z_topup_Z']);
    const order = await bench.partner.post('/v1/orders', { package_id: 'pkg_z_Z' });
    expectProblem(order, 409, 'package_unavailable');
    await (await bench.startWorker()).runIfDue();
    expect(await bench.available()).toEqual(everything);
    expect((await bench.history('pkg_z_Z')).map(([, , available]) => available)).toEqual([true, false, true]);
  });

  it('is distinguished from a provider without a package list, and a sync of only providers without one does nothing', async () => {
    bench.zendit.packages = [offer('Z')];
    await (await bench.startWorker()).runIfDue();
    await bench.database.pool.query(`UPDATE package_sources SET provider = 'stub'`);
    const stub = new ScriptedProvider('stub').asProvider();
    const beside = await bench.startWorker({}, [bench.esimAccess.asLiveProvider(), stub]);
    expect(await beside.runIfDue()).toBe(true);
    expect(await bench.available()).toEqual(['pkg_z_Z']);
    await bench.database.pool.query(`UPDATE package_sources SET provider = 'zendit'`);
    const alone = await bench.startWorker({}, [stub]);
    expect((await bench.office.admin.post('/internal/v1/catalog/sync')).status).toBe(202);
    expect(await alone.runIfDue()).toBe(false);
    expect(await bench.available()).toEqual(['pkg_z_Z']);
  });

  it('is named in a warning at startup when a rule refers to it', () => {
    const rules = { LIVE_PACKAGE_PROVIDERS: 'FR=zendit,pkg_a_X=none,DE=zendit,*=esim_access' };
    const config = loadConfig(testEnvironment(bench.database.url, rules));
    const registry = new ProviderRegistry({ name: 'sandbox' } as SandboxProvider);
    registry.register(new ScriptedProvider('esim_access').asProvider());
    const logger = { warn: vi.fn() };
    const unused = {} as SyncCatalog & ProviderHealthRepository & AnnounceChanges & RefreshTopupFits;
    const sweeps = new Sweeps(logger as unknown as Logger);
    const jobs = new CatalogSyncJobs(
      config,
      logger as unknown as Logger,
      registry,
      unused,
      unused,
      unused,
      unused,
      sweeps,
    );
    jobs.onApplicationBootstrap();
    expect(logger.warn.mock.calls).toEqual([
      [{ event: 'catalog.rule_names_unconnected', providers: ['zendit'] }],
    ]);
  });
});

describe('a partner price that was removed', () => {
  it('counts as a change of the package, which `updated_since` lists', async () => {
    bench.esimAccess.packages = [offer('A')];
    await (await bench.startWorker()).runIfDue();
    const put = async (prices: object[]) => {
      const path = `/internal/v1/partners/${bench.partnerId}/price-list`;
      const answer = await bench.office.admin.call('PUT', path, { body: { prices } });
      expect(answer.status, answer.text).toBe(200);
    };
    await put([{ package_id: 'pkg_a_A', price: { amount: 77, currency: 'USD' } }]);
    const before = await bench.now();
    await put([]);
    const told = await eventually('the partner is told', async () => {
      const items = await bench.updatedSince(before);
      return items.length > 0 ? items : null;
    });
    expect(told).toEqual([['pkg_a_A', 120, true]]);
  });
});

/** Starts a worker with these rules, as after a restart, which applies them at once. */
async function restart(rules: string): Promise<SyncWorker> {
  const worker = await bench.startWorker({ LIVE_PACKAGE_PROVIDERS: rules });
  expect(await worker.runIfDue(), 'the new rules are noticed').toBe(true);
  return worker;
}

describe('LIVE_PACKAGE_PROVIDERS', () => {
  it('picks the seller by the first rule that matches, for base packages of exactly one country', async () => {
    bench.esimAccess.packages = [
      offer('FR-1'),
      offer('FR-2'),
      offer('FR-T', { kind: 'topup' }),
      offer('DE-1', { coverage: ['DE'] }),
      offer('EU-1', { coverage: ['DE', 'FR'] }),
    ];
    bench.zendit.packages = [
      offer('FR-1'),
      offer('DE-1', { coverage: ['DE'] }),
      offer('EU-1', { coverage: ['DE', 'FR'] }),
    ];
    const everything = [
      ...['pkg_a_DE-1', 'pkg_a_EU-1', 'pkg_a_FR-1', 'pkg_a_FR-2', 'pkg_a_topup_FR-T'],
      ...['pkg_z_DE-1', 'pkg_z_EU-1', 'pkg_z_FR-1'],
    ];
    await restart('');
    expect(await bench.available()).toEqual(everything);
    await restart('FR=zendit');
    expect(await bench.available()).toEqual(
      everything.filter((id) => !['pkg_a_FR-1', 'pkg_a_FR-2'].includes(id)),
    );
    const before = await bench.now();
    await restart('pkg_a_FR-2=esim_access,FR=zendit,pkg_z_DE-1=none,*=esim_access');
    expect(await bench.available()).toEqual([
      'pkg_a_DE-1',
      'pkg_a_EU-1',
      'pkg_a_FR-2',
      'pkg_a_topup_FR-T',
      'pkg_z_FR-1',
    ]);
    await bench.package('pkg_z_DE-1', ({ available }) => available === false);
    expect((await bench.updatedSince(before)).sort()).toEqual([
      ['pkg_a_FR-2', 120, true],
      ['pkg_z_DE-1', 120, false],
      ['pkg_z_EU-1', 120, false],
    ]);
    await restart('*=none');
    expect(await bench.available()).toEqual(['pkg_a_topup_FR-T']);
    await restart('');
    expect(await bench.available()).toEqual(everything);
    expect((await bench.history('pkg_z_DE-1')).map(([, , available]) => available)).toEqual([
      true,
      false,
      true,
    ]);
  });

  it('does not treat packages that the rules take off sale as a shrunken list', async () => {
    bench.esimAccess.packages = [...offers('FR', 20), ...offers('DE', 14, { coverage: ['DE'] })];
    await restart('');
    await restart('FR=none');
    expect(await bench.newest()).toMatchObject({
      status: 'completed',
      result: { esim_access: { listed: 34, changed: 0, withdrawn: 20 } },
    });
    expect(await bench.available()).toHaveLength(14);
  });

  it('still rejects a shrunken list, because unsold packages do not make up for missing sold ones', async () => {
    bench.esimAccess.packages = [...offers('FR', 40), ...offers('DE', 40, { coverage: ['DE'] })];
    const worker = await restart('FR=none');
    expect(await bench.available()).toHaveLength(40);
    bench.esimAccess.packages = bench.esimAccess.packages.slice(0, 40 + 19);
    expect((await bench.sync(worker)).result['esim_access']).toEqual({ error: 'catalog_shrank' });
    expect(await bench.available()).toHaveLength(40);
  });

  it('applies to the packages of a provider whose list cannot be loaded', async () => {
    bench.esimAccess.packages = [offer('FR-1'), offer('DE-1', { coverage: ['DE'] })];
    bench.zendit.packages = [offer('FR-1')];
    await restart('');
    const version = await bench.version();
    bench.esimAccess.error = new Error('503');
    await restart('FR=zendit');
    expect((await bench.newest()).result['esim_access']).toEqual({ error: 'provider_unavailable' });
    expect(await bench.available()).toEqual(['pkg_a_DE-1', 'pkg_z_FR-1']);
    expect(await bench.version(), 'partners are told').toBeGreaterThan(version);
    expect((await bench.history('pkg_a_FR-1')).at(-1)).toEqual([1_000_000, 120, false]);
  });
});

describe('a listed package that PostgreSQL rejects (D43)', () => {
  it('is not sold, and the others are stored', async () => {
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

  it('does not hide a more expensive package that looks the same', async () => {
    bench.esimAccess.packages = [offer('A', { title: 'Same' }), offer('B', { title: 'Same', ...DEARER })];
    const worker = await bench.startWorker();
    await worker.runIfDue();
    expect(await bench.available()).toEqual(['pkg_a_A']);
    // The cost does not affect whether two packages look the same.
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

  it('withdraws nothing when most of the list is rejected', async () => {
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

  it('does not keep other top-ups from getting their new prices', async () => {
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

/** Adds a separate price list to the provider's package list. */
function withPrices(provider: LiveProvider, packages: readonly ProviderPackage[]): LiveProvider {
  const readPage = () => Promise.resolve({ packages, next: null });
  const prices = { says: 'prices', kinds: ['topup'], pageTimeoutMs: 60_000, readPage } as const;
  return { ...provider, listPackages: () => [...provider.listPackages(), prices] };
}
