import { pino } from 'pino';
import type { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { createDataSource } from '../../src/infra/database/index.js';
import { EsimAccessProvider } from '../../src/providers/esim-access/esim-access-provider.js';
import { ProviderRateLimiter } from '../../src/providers/http/index.js';
import {
  type EsimAccessSimulator,
  SIMULATOR_CREDENTIALS,
  startEsimAccessSimulator,
} from '../../simulators/esim-access/simulator.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { UNPACED, newPlacementGuard, type ProviderSim, type ProviderWorld } from './provider-world.js';

export interface EsimAccessWorld extends ProviderWorld {
  readonly provider: EsimAccessProvider;
  readonly simulator: EsimAccessSimulator;
  /** Parsed log lines of the providers, oldest first. */
  readonly logLines: readonly Record<string, unknown>[];
}

export interface EsimAccessWorldOptions {
  readonly timeoutMs?: number;
  readonly secretKey?: string;
  /** Null means no limit on either side. */
  readonly requestsPerSecond?: number | null;
}

export async function openTestDataSource(url: string): Promise<DataSource> {
  return createDataSource({
    url,
    poolMax: 8,
    poolWaitMs: 20_000,
    entities: [],
    applicationName: 'test',
  }).initialize();
}

export interface TestDataSource {
  readonly database: TestDatabase;
  readonly dataSource: DataSource;
}

/** Creates a database and a data source for the tests of a file. */
export function useTestDataSource(): TestDataSource {
  const bed = {} as { database: TestDatabase; dataSource: DataSource };
  beforeAll(async () => {
    bed.database = await createTestDatabase();
    bed.dataSource = await openTestDataSource(bed.database.url);
  });
  afterAll(async () => {
    await bed.dataSource.destroy();
    await bed.database.drop();
  });
  return bed;
}

/** Passes a new world to `use` for each test. */
export function useEsimAccess(use: (world: EsimAccessWorld) => void): TestDataSource {
  const bed = useTestDataSource();
  let world: EsimAccessWorld;
  beforeEach(async () => {
    world = await makeEsimAccessWorld(bed.dataSource);
    use(world);
  });
  afterEach(() => world.close());
  return bed;
}

/** eSIM Access's simulator in this process, and an adapter that calls it over HTTP. */
export async function makeEsimAccessWorld(
  dataSource: DataSource,
  options: EsimAccessWorldOptions = {},
): Promise<EsimAccessWorld> {
  const requestsPerSecond = options.requestsPerSecond ?? null;
  const simulator = await startEsimAccessSimulator({ requestsPerSecond });
  const logLines: Record<string, unknown>[] = [];
  const logger = pino({}, { write: (line: string) => void logLines.push(JSON.parse(line)) });
  const opened: EsimAccessProvider[] = [];
  const newProvider = () => {
    const settings = {
      ...SIMULATOR_CREDENTIALS,
      ...(options.secretKey === undefined ? {} : { secretKey: options.secretKey }),
      ...{ baseUrl: simulator.url, timeoutMs: options.timeoutMs ?? 20_000, readLagMs: 0 },
    };
    const pace =
      requestsPerSecond === null ? UNPACED : new ProviderRateLimiter(dataSource.manager, requestsPerSecond);
    const provider = new EsimAccessProvider(settings, { pace, guard: newPlacementGuard(dataSource), logger });
    opened.push(provider);
    return provider;
  };
  return {
    provider: newProvider(),
    anotherProvider: newProvider,
    simulator,
    logLines,
    sim: toSim(simulator),
    basePackage: { upstreamPackageId: 'PDE1D7', unitCost: { micros: 600_000, currency: 'USD' } },
    topupPackage: { upstreamPackageId: 'TOPUP_PDE1D7', unitCost: { micros: 600_000, currency: 'USD' } },
    close: async () => {
      await Promise.all(opened.map((provider) => provider.close()));
      await simulator.close();
    },
  };
}

function toSim(simulator: EsimAccessSimulator): ProviderSim {
  const set = (faults: Parameters<EsimAccessSimulator['control']>[0]['faults'] & object) =>
    Promise.resolve(simulator.control({ faults }));
  return {
    purchasesOf: (reference) => Promise.resolve(simulator.state().purchases[reference] ?? 0),
    canceledOf: (reference) => Promise.resolve(simulator.state().canceled[reference] ?? 0),
    topupsOf: (reference) => Promise.resolve(simulator.state().topups[reference] ?? 0),
    dropAnswersAfterCommit: (n) => set({ dropAfterCommit: n }),
    dropAnswersBeforeCommit: (n) => set({ dropBeforeCommit: n }),
    refuseAsBusy: (n) => set({ busy: n }),
    answerGarbage: (n) => set({ garbage: n, garbageKind: 'html' }),
    outOfStock: (on) => set({ stock: on ? 0 : null }),
  };
}
