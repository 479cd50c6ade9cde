import type { Logger } from 'pino';
import type { DataSource } from 'typeorm';
import {
  type ControlBody,
  startZenditSimulator,
  type ZenditSimulator,
} from '../../simulators/zendit/simulator.js';
import { createDataSource } from '../../src/infra/database/index.js';
import { CircuitBreaker, ProviderHttpClient, ProviderRateLimiter } from '../../src/providers/http/index.js';
import { ZenditProvider } from '../../src/providers/zendit/zendit-provider.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { UNPACED, newPlacementGuard, type ProviderSim, type ProviderWorld } from './provider-world.js';

export const BASE = { upstreamPackageId: 'ESIM-FR-7D-1GB', unitCost: { micros: 1_200_000, currency: 'USD' } };
export const TOPUP = {
  upstreamPackageId: 'ESIM-FR-30D-5GB',
  unitCost: { micros: 4_500_000, currency: 'USD' },
  days: null,
  otherPurchases: () => Promise.reject(new Error('Zendit answers by the id of the top-up itself')),
};

/** Longer than any call waits for its slot, except in tests of that wait. */
const TIMEOUT_MS = 5_000;

export interface LogLine {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** Records every log line. */
export class LogBook {
  readonly lines: LogLine[] = [];
  readonly logger = {
    info: (line: LogLine) => void this.lines.push(line),
    warn: (line: LogLine) => void this.lines.push(line),
    error: (line: LogLine) => void this.lines.push(line),
  } as unknown as Pick<Logger, 'info' | 'warn' | 'error'>;

  events(): string[] {
    return this.lines.map(({ event }) => event);
  }
}

export interface ProviderSettings {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly requestsPerSecond?: number;
  readonly timeoutMs?: number;
  /** Deadline of a whole operation, however many calls it needs. */
  readonly deadlineMs?: number;
}

/** The adapter of one process, with a separate database for the rate limit. */
export class ZenditBench {
  readonly log = new LogBook();
  private readonly clients: ProviderHttpClient[] = [];

  private constructor(
    private readonly database: TestDatabase,
    private readonly dataSource: DataSource,
  ) {}

  static async open(): Promise<ZenditBench> {
    const database = await createTestDatabase();
    const dataSource = await createDataSource({
      url: database.url,
      poolMax: 8,
      poolWaitMs: 20_000,
      entities: [],
      applicationName: 'zendit-test',
    }).initialize();
    return new ZenditBench(database, dataSource);
  }

  provider(settings: ProviderSettings): ZenditProvider {
    const { baseUrl, apiKey, timeoutMs = TIMEOUT_MS } = settings;
    const { logger } = this.log;
    const pace =
      settings.requestsPerSecond === undefined
        ? UNPACED
        : new ProviderRateLimiter(this.dataSource.manager, settings.requestsPerSecond);
    const breaker = new CircuitBreaker();
    const client = new ProviderHttpClient({ provider: 'zendit', baseUrl, timeoutMs, pace, breaker, logger });
    this.clients.push(client);
    const deadlineMs = settings.deadlineMs ?? 20_000;
    const guard = newPlacementGuard(this.dataSource);
    return new ZenditProvider({ client, apiKey, guard, timeoutMs: deadlineMs, readLagMs: 0, logger });
  }

  async endTest(): Promise<void> {
    this.log.lines.length = 0;
    await Promise.all(this.clients.splice(0).map((client) => client.close()));
    await this.dataSource.query('TRUNCATE upstream_pace');
  }

  async close(): Promise<void> {
    await this.dataSource.destroy();
    await this.database.drop();
  }
}

export async function makeZenditWorld(bench: ZenditBench): Promise<ProviderWorld> {
  const simulator = await startZenditSimulator();
  const provider = () => bench.provider(simulator);
  return {
    provider: provider(),
    anotherProvider: provider,
    sim: toSim(simulator),
    basePackage: BASE,
    topupPackage: TOPUP,
    close: async () => {
      const { duplicatePosts, duplicateRefunds } = simulator.state();
      await bench.endTest();
      await simulator.close();
      if (duplicatePosts + duplicateRefunds > 0)
        throw new Error('a known purchase or refund was posted again');
    },
  };
}

function toSim(simulator: ZenditSimulator): ProviderSim {
  const control = (body: ControlBody): Promise<void> => Promise.resolve(simulator.control(body));
  const count = (reference: string, matches: (one: PurchaseLine) => boolean): Promise<number> =>
    Promise.resolve(
      Object.entries(simulator.state().purchases).filter(
        ([id, one]) => (id === reference || id.startsWith(`${reference}-`)) && matches(one),
      ).length,
    );
  return {
    purchasesOf: (reference) => count(reference, ({ status }) => status !== 'FAILED'),
    canceledOf: (reference) => count(reference, ({ refund }) => refund === 'DONE'),
    topupsOf: (reference) =>
      count(reference, ({ status, topupOf }) => status !== 'FAILED' && topupOf !== null),
    dropAnswersAfterCommit: (n) => control({ dropAfterCommit: n }),
    dropAnswersBeforeCommit: (n) => control({ dropBeforeCommit: n }),
    refuseAsBusy: (n) => control({ busy: n }),
    answerGarbage: (n) => control({ badAnswers: n, badAnswersTakeEffect: false }),
    outOfStock: (on) => control({ outOfStock: on }),
  };
}

type PurchaseLine = ReturnType<ZenditSimulator['state']>['purchases'][string];
