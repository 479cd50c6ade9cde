import { pino } from 'pino';
import type { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { defaultCatalog } from '../../simulators/esim-access/catalog.js';
import { largeCatalog } from '../../simulators/esim-access/large-catalog.js';
import {
  type EsimAccessSimulator,
  SIMULATOR_CREDENTIALS,
  startEsimAccessSimulator,
} from '../../simulators/esim-access/simulator.js';
import { offerLike, unlimitedTier } from '../../simulators/zendit/offers.js';
import { startZenditSimulator, type ZenditSimulator } from '../../simulators/zendit/simulator.js';
import type { EsimProvider } from '../../src/providers/index.js';
import { EsimAccessProvider } from '../../src/providers/esim-access/esim-access-provider.js';
import { CircuitBreaker, ProviderHttpClient, ProviderRateLimiter } from '../../src/providers/http/index.js';
import { ZenditProvider } from '../../src/providers/zendit/zendit-provider.js';
import { Transactions } from '../../src/infra/database/index.js';
import { CatalogSyncsRepository, SyncOvertaken } from '../../src/catalog-sync/catalog-syncs.repository.js';
import { HeldSync } from '../../src/catalog-sync/worker/held-sync.js';
import { eventually } from '../harness/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import type { Json } from '../harness/order-steps.js';
import { openTestDataSource } from '../providers/esim-access-world.js';
import { CatalogBench, type SyncWorker } from './catalog-bench.js';
import { newPlacementGuard } from '../providers/provider-world.js';

/** Timeout of an order call, much shorter than a catalog needs. */
const TIMEOUT_MS = 400;
/** No test reaches this deadline. The one that needs a deadline sets its own. */
const CATALOG_TIMEOUT_MS = 600_000;

const logger = pino({ level: 'silent' });
let bench: CatalogBench;
let dataSource: DataSource;
let esimAccess: EsimAccessSimulator;
let zendit: ZenditSimulator;
let closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  bench = await CatalogBench.open();
  dataSource = await openTestDataSource(bench.database.url);
});
beforeEach(async () => {
  [esimAccess, zendit] = [
    await startEsimAccessSimulator({ requestsPerSecond: null }),
    await startZenditSimulator(),
  ];
});
afterEach(async () => {
  await bench.startAfresh();
  await Promise.all(closers.map((close) => close()));
  closers = [];
  await Promise.all([esimAccess.close(), zendit.close()]);
});
afterAll(async () => {
  await dataSource.destroy();
  await bench.close();
});

const pace = (): ProviderRateLimiter => new ProviderRateLimiter(dataSource.manager, 5_000);

function overEsimAccess(catalogTimeoutMs = CATALOG_TIMEOUT_MS, timeoutMs = TIMEOUT_MS): EsimProvider {
  const settings = { ...SIMULATOR_CREDENTIALS, baseUrl: esimAccess.url, readLagMs: 0 };
  const provider = new EsimAccessProvider(
    { ...settings, timeoutMs, catalogTimeoutMs },
    { pace: pace(), guard: newPlacementGuard(dataSource), logger },
  );
  closers.push(() => provider.close());
  return provider;
}

function overZendit(catalogTimeoutMs = CATALOG_TIMEOUT_MS): EsimProvider {
  const { baseUrl, apiKey } = zendit;
  const client = new ProviderHttpClient({
    ...{
      provider: 'zendit',
      baseUrl,
      timeoutMs: TIMEOUT_MS,
      pace: pace(),
      breaker: new CircuitBreaker(),
      logger,
    },
  });
  closers.push(() => client.close());
  return new ZenditProvider({
    client,
    apiKey,
    guard: newPlacementGuard(dataSource),
    timeoutMs: TIMEOUT_MS,
    readLagMs: 0,
    catalogTimeoutMs,
    logger,
  });
}

async function worker(provider: EsimProvider): Promise<SyncWorker> {
  return bench.startWorker({}, [provider]);
}

/** The provider's sync error, as the portal team sees it. */
async function told(name: string): Promise<unknown> {
  const { data } = (await bench.office.admin.get('/internal/v1/providers')).body;
  return (data as Json[]).find((each) => each['name'] === name)!['last_sync_error'];
}

const offersOf = (count: number) =>
  Array.from({ length: count }, (_, i) => offerLike(`ESIM-ES-${i + 1}`, { durationDays: i + 1 }));

describe("a catalog that takes longer than an order's timeout", () => {
  it('loads 590 packages from one slow list', async () => {
    esimAccess.control({ packages: largeCatalog(590), faults: { slow: 1, slowMs: 5 * TIMEOUT_MS } });
    const synced = await bench.sync(await worker(overEsimAccess()));
    expect(synced).toEqual({
      status: 'completed',
      result: { esim_access: { listed: 590, changed: 590, withdrawn: 0 } },
    });
  });

  it('loads 1,510 offers from slow pages', async () => {
    zendit.control({ offerList: { instead: offersOf(1_510), brokenPages: { 0: 1, 700: 2 } }, slowMs: 20 });
    const one = await worker(overZendit());
    expect((await bench.sync(one)).result).toEqual({
      zendit: { listed: 3_020, changed: 3_020, withdrawn: 0 },
    });
    // 16 pages of 100, and only the three failed responses are requested again.
    expect(zendit.state().calls['GET /esim/offers']).toBe(16 + 3);
  });

  it('stops at its own deadline and keeps the pages that arrived before', async () => {
    zendit.control({ offerList: { instead: offersOf(4_000), brokenPages: {} }, slowMs: 350 });
    const synced = await bench.sync(await worker(overZendit(6_000)));
    expect(synced).toMatchObject({ status: 'failed', result: { zendit: { error: 'catalog_incomplete' } } });
    expect(synced.result['zendit']).toHaveProperty('listed');
    expect((await bench.available()).length).toBeGreaterThanOrEqual(200);
  });
});

const kindOf = (wanted: string) => defaultCatalog().filter(({ kind }) => kind === wanted);
const [BASES, TOPUPS] = [kindOf('BASE'), kindOf('TOPUP')];

describe('a truncated list', () => {
  it('stores what arrived, withdraws nothing, and reports the failure', async () => {
    zendit.control({ offerList: { instead: offersOf(150), brokenPages: {} } });
    const one = await worker(overZendit());
    await bench.sync(one);
    const dearer = offersOf(250).map((offer) => ({ ...offer, cost: { ...offer.cost, fixed: 200 } }));
    // The first offer is gone, and the third page fails.
    zendit.control({ offerList: { instead: dearer.slice(1), brokenPages: { 200: 99 } } });
    const synced = await bench.sync(one);
    expect(synced).toEqual({
      status: 'failed',
      result: { zendit: { listed: 400, changed: 400, withdrawn: 0, error: 'catalog_incomplete' } },
    });
    expect(await told('zendit')).toBe('catalog_incomplete');
    const sold = await bench.available();
    expect(sold).toHaveLength(402);
    expect(sold).toContain('pkg_z_ESIM-ES-1');
    expect((await bench.history('pkg_z_ESIM-ES-2')).map(([cost]) => cost)).toEqual([1_000_000, 2_000_000]);
    zendit.control({ offerList: { instead: dearer.slice(1), brokenPages: {} } });
    expect((await bench.sync(one)).result).toEqual({ zendit: { listed: 498, changed: 98, withdrawn: 2 } });
    const version = await bench.version();
    expect((await bench.sync(one)).result).toEqual({ zendit: { listed: 498, changed: 0, withdrawn: 0 } });
    expect(await bench.version()).toBe(version);
    expect(await told('zendit')).toBeNull();
  });

  it.each([
    ['is refused', { unfilteredTopups: 'refused' }, 'topup_prices_unavailable'],
    ['is empty', { unfilteredTopups: 'empty' }, null],
    ['has the 2023 format', { oldForm: 'topups' }, null],
    ['has an unreadable entry', { unreadable: 1 }, null],
  ] as const)('keeps every base package when the list of top-ups %s', async (_, change, error) => {
    const habits = { unfilteredTopups: 'all', oldForm: 'none', unreadable: 0 } as const;
    esimAccess.control({ faults: { catalog: { ...habits, ...change } } });
    // Leaves enough time for each of the thirty queries below on a busy machine.
    const one = await worker(overEsimAccess(CATALOG_TIMEOUT_MS, 60_000));
    expect(await bench.sync(one)).toMatchObject({
      status: 'completed',
      result: { esim_access: { listed: BASES.length } },
    });
    expect(await told('esim_access')).toBe(error);
    expect(await bench.available()).toHaveLength(BASES.length);
    expect(await one.askTopups()).toBe(BASES.length - 1);
    expect((await bench.available()).filter((id) => id.startsWith('pkg_a_topup_'))).toHaveLength(
      TOPUPS.length,
    );
  });
});

describe('identical offers', () => {
  const twins = (...cents: number[]) =>
    cents.map((fixed, i) => {
      const offer = offerLike(`TWIN-${i}`);
      return { ...offer, cost: { ...offer.cost, fixed } };
    });

  it('sells one of them at the cheapest price, even after a price change, and keeps tiers apart', async () => {
    const tiers = [unlimitedTier('Fast', '512 kbps', 900), unlimitedTier('Faster', '1.25 Mbps', 1_200)];
    const one = await worker(overZendit());
    const sellAll = async (...cents: number[]) => {
      zendit.control({ offerList: { instead: [...twins(...cents), ...tiers], brokenPages: {} } });
      await bench.sync(one);
      return (await bench.available()).filter((id) => id.includes('TWIN') && !id.includes('topup'));
    };
    expect(await sellAll(100, 200)).toEqual(['pkg_z_TWIN-0']);
    const [version, history] = [await bench.version(), await bench.history('pkg_z_TWIN-1')];
    expect(await sellAll(100, 200), 'and it stays so').toEqual(['pkg_z_TWIN-0']);
    expect([await bench.version(), await bench.history('pkg_z_TWIN-1')]).toEqual([version, history]);
    expect(await sellAll(300, 200), 'the other one is cheaper now').toEqual(['pkg_z_TWIN-1']);
    expect(await sellAll(200, 200), 'no two prices, no choice').toEqual(['pkg_z_TWIN-0', 'pkg_z_TWIN-1']);
    const item = await bench.package('pkg_z_ESIM-ES-7D-UNLIMITED-FASTER', () => true);
    expect(item).toMatchObject({
      title: 'Spain, Faster',
      available: true,
      speed_policy: '1 GB a day at full speed, then 1.25 Mbps until midnight.',
    });
    expect(item['notes']).toContain('Unlimited data for 7 days.');
  });
});

describe('a minimum retail price', () => {
  it('keeps packages apart, reaches partners, and comes with its words to the portal team', async () => {
    const [like] = defaultCatalog();
    const NOTE = 'Resellers must ensure a minimum retail price of USD 4.50.\n<b>Contract 12</b>';
    const packages = [undefined, NOTE.split('\n')[0]!, 'Minimum retail price: EUR 5', NOTE].map(
      (saleNote, i) => ({
        ...{ ...like!, packageCode: `NOTED${i}`, slug: `DE_${i}` },
        price: like!.price + i,
        ...(saleNote === undefined ? {} : { saleNote }),
      }),
    );
    esimAccess.control({ packages });
    await bench.sync(await worker(overEsimAccess()));
    expect(await bench.available(), 'the third looks like the first').toEqual(
      expect.arrayContaining(['pkg_a_NOTED0', 'pkg_a_NOTED1']),
    );
    const minimum = { amount: 450, currency: 'USD' };
    expect(await bench.package('pkg_a_NOTED1', () => true)).toMatchObject({ min_retail_price: minimum });
    expect(await bench.package('pkg_a_NOTED0', () => true)).toMatchObject({ min_retail_price: null });
    const partners = await bench.partner.get('/v1/catalog');
    expect(partners.text).not.toContain('Resellers');
    const admin = (id: string) => bench.office.admin.get(`/internal/v1/packages/${id}`);
    const shown = await admin('pkg_a_NOTED1');
    expect(shown.status, shown.text).toBe(200);
    expect(shown.body.data).toMatchObject({
      ...{ id: 'pkg_a_NOTED1', provider: 'esim_access', upstream_package_id: 'NOTED1' },
      cost: { amount_micros: (like!.price + 1) * 100, currency: 'USD' },
      ...{ sale_note: NOTE.split('\n')[0], min_retail_price: minimum },
    });
    expect((await admin('pkg_a_NOTED2')).body.data).toMatchObject({
      ...{ sale_note: 'Minimum retail price: EUR 5', min_retail_price: null, available: false },
    });
    expect((await admin('pkg_a_NOTED0')).body.data.sale_note).toBeNull();
    for (const id of ['pkg_a_NONE', 'pkg_fr_1gb_7d', 'ord_1', '%00', 'a'.repeat(200)])
      expectProblem(await admin(id), 404, 'not_found');
  });
});

describe('a worker that waits longer than its lease', () => {
  it('renews the lease, and is notified when another worker has taken over', async () => {
    const transactions = new Transactions(dataSource);
    const syncs = new CatalogSyncsRepository(dataSource.manager);
    const leaseMs = 900;
    const settings = { digest: 'any', ageMs: 0, leaseMs };
    const begin = () => transactions.run((tx) => syncs.begin(tx, 1, settings));
    const running = (await begin())!;
    const held = new HeldSync(running, syncs, transactions, new AbortController().signal);
    const renewals = async () => {
      const { rows } = await bench.database.pool.query<{ until: Date }>(
        'SELECT lease_until AS until FROM catalog_syncs WHERE id = $1',
        [running.id],
      );
      return rows[0]!.until.getTime();
    };
    const first = await renewals();
    const waiting = held.waitFor(
      (signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    );
    const over = expect(waiting).rejects.toBeInstanceOf(SyncOvertaken);
    await eventually('the lease is renewed, twice', async () => (await renewals()) > first + leaseMs / 2);
    // Another worker takes it over.
    await bench.database.pool.query('UPDATE catalog_syncs SET attempt = attempt + 1 WHERE id = $1', [
      running.id,
    ]);
    await over;
  });
});

describe('a worker that stops while a list is loading', () => {
  it('hands the synchronization to the next worker at once', async () => {
    bench.esimAccess.packages = [];
    const one = await bench.startWorker();
    const held = bench.esimAccess.holdNextList();
    const running = one.runIfDue();
    await held.reached;
    one.stop();
    await running;
    const next = await bench.startWorker();
    expect(await next.runIfDue(), 'no lease is waited for').toBe(true);
    expect(await bench.newest()).toMatchObject({ status: 'completed' });
    held.release();
  });
});
