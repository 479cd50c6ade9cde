import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { pino } from 'pino';
import type { DataSource } from 'typeorm';
import { defaultCatalog, packageOnWire } from '../../simulators/esim-access/catalog.js';
import { SIMULATOR_CREDENTIALS } from '../../simulators/esim-access/simulator.js';
import { EsimAccessProvider } from '../../src/providers/esim-access/esim-access-provider.js';
import { toLivePackage } from '../../src/catalog-sync/live-packages.js';
import { UNPACED, newPlacementGuard } from './provider-world.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { type AnsweringServer, startAnsweringServer } from './answering-server.js';
import { openTestDataSource } from './esim-access-world.js';
import { listPackages } from './listed-packages.js';
import { ZenditSuite } from './zendit-suite.js';

describe('eSIM Access', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let server: AnsweringServer;
  let provider: EsimAccessProvider;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openTestDataSource(database.url);
  });
  afterEach(async () => {
    await provider.close();
    await server.close();
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  /** Lists the first packages of the simulator, one per currency. */
  async function listIn(...currencies: readonly string[]) {
    const sold = defaultCatalog().slice(0, currencies.length).map(packageOnWire);
    const packageList = sold.map((item, i) => ({ ...item, currencyCode: currencies[i] }));
    server = await startAnsweringServer(() => ({
      status: 200,
      json: { success: true, errorCode: '0', errorMsg: null, obj: { packageList } },
    }));
    const settings = { ...SIMULATOR_CREDENTIALS, baseUrl: server.url, timeoutMs: 5_000, readLagMs: 0 };
    provider = new EsimAccessProvider(settings, {
      pace: UNPACED,
      guard: newPlacementGuard(dataSource),
      logger: pino({ level: 'silent' }),
    });
    return listPackages(provider);
  }

  it('lists only prices in dollars, the currency of its orders', async () => {
    const [inDollars] = defaultCatalog();
    const packages = await listIn('USD', 'EUR', 'JPY', 'usd');
    expect(new Set(packages.map((item) => item.upstreamId))).toEqual(new Set([inDollars!.packageCode]));
    expect(new Set(packages.map((item) => item.cost.currency))).toEqual(new Set(['USD']));
  });
});

describe('the live catalog', () => {
  const suite = ZenditSuite.use();

  it.each(['USD', 'EUR', 'GBP'])('sells packages priced in hundredths: %s', async (currency) => {
    expect(await soldIn(currency)).toMatchObject({
      cost: { currency },
      item: { price: { currency }, available: true },
    });
  });

  it.each([
    ['JPY', 'none'],
    ['KRW', 'none'],
    ['KWD', 'three'],
    ['usd', 'an unknown number'],
    ['', 'an unknown number'],
  ])('does not list a package in %s, whose amounts have %s decimals', async (currency) => {
    expect(await soldIn(currency)).toBeNull();
  });

  async function soldIn(currency: string) {
    const packages = await listPackages(suite.provider);
    const offered = packages.find((item) => item.kind === 'base' && item.cost.currency === 'USD')!;
    return toLivePackage(
      'zendit',
      { ...offered, cost: { ...offered.cost, currency } },
      { marginBps: 0, rules: [] },
    );
  }
});
