import { expect } from 'vitest';
import {
  type EsimAccessSimulator,
  SIMULATOR_CREDENTIALS,
  startEsimAccessSimulator,
} from '../../simulators/esim-access/simulator.js';
import { startZenditSimulator, type ZenditSimulator } from '../../simulators/zendit/simulator.js';
import {
  createTestDatabase,
  eventually,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { topupsKnown } from '../harness/known-topups.js';
import { RoleChild } from '../harness/role-child.js';
import { CALM, type Fault } from './faults.js';

/** A partner with a live key. */
export interface LiveBuyer {
  readonly id: string;
  readonly api: HttpClient;
}

/** Small base packages with top-ups, among them a day pass. */
const SOLD = ['PDE1D7', 'PTR1D7', 'JP_DAILY', 'ESIM-FR-7D-1GB', 'ESIM-ES-7D-1GB'];
const WORKERS = 2;
/** Longer than a scenario takes, unless an uncertainty remains that only support can resolve. */
export const NEEDS_REVIEW_AFTER_MS = 40_000;
const SETTINGS = {
  PROVIDER_REQUESTS_PER_SECOND: '2000',
  PROVIDER_TIMEOUT_MS: '2000',
  // Longer than a slow call takes to have an effect, because a dead worker leaves behind only the time of its claim.
  PROVIDER_READ_LAG_MS: '3500',
  LEASE_MS: '1500',
  SWEEP_INTERVAL_MS: '250',
  NEEDS_REVIEW_AFTER_MS: String(NEEDS_REVIEW_AFTER_MS),
};

/** A worker process that is restarted whenever it was stopped or killed. */
class Worker {
  readonly deaths: { readonly at: string; readonly how: 'stop' | 'kill' }[] = [];
  /** Serializes stops and kills, so that each waits for the restart after the previous one. */
  private turn: Promise<void> = Promise.resolve();

  constructor(private readonly child: RoleChild) {}

  /** Sends SIGTERM or SIGKILL, and starts a new process. */
  end(how: 'stop' | 'kill'): Promise<void> {
    this.turn = this.turn.then(async () => {
      this.deaths.push({ at: new Date().toISOString(), how });
      await this.child[how]();
      await this.child.restart();
    });
    // `back` reports a failed restart.
    this.turn.catch(() => undefined);
    return this.turn;
  }

  /** Waits until it is running again. */
  back(): Promise<void> {
    return this.turn;
  }

  async close(): Promise<void> {
    await this.turn.catch(() => undefined);
    await this.child.kill();
  }
}

/** The service in Live: API, admin API and both providers in this process, and two worker processes. */
export class LiveService {
  private constructor(
    readonly database: TestDatabase,
    private readonly office: TestService,
    private readonly api: TestService,
    readonly workers: readonly Worker[],
    readonly esimAccess: EsimAccessSimulator,
    readonly zendit: ZenditSimulator,
    readonly packages: readonly string[],
  ) {}

  static async open(): Promise<LiveService> {
    const [database, esimAccess, zendit] = await Promise.all([
      createTestDatabase(),
      startEsimAccessSimulator({ requestsPerSecond: null }),
      startZenditSimulator(),
    ]);
    // The account must not run out of money. A thousand scenarios buy a lot.
    esimAccess.control({ balance: 1e12 });
    zendit.control({ balance: 1e11 });
    const env = {
      ...SETTINGS,
      ESIM_ACCESS_BASE_URL: esimAccess.url,
      ESIM_ACCESS_CODE: SIMULATOR_CREDENTIALS.accessCode,
      ESIM_ACCESS_SECRET: SIMULATOR_CREDENTIALS.secretKey,
      ZENDIT_BASE_URL: zendit.baseUrl,
      ZENDIT_API_KEY: zendit.apiKey,
    };
    const office = await startTestService({ role: 'admin', database, env });
    const api = await startTestService({ role: 'api', database, env });
    const workers = await Promise.all(
      Array.from(
        { length: WORKERS },
        async () => new Worker(await RoleChild.start({ role: 'worker', database, env })),
      ),
    );
    const packages = await waitForPackages(database);
    return new LiveService(database, office, api, workers, esimAccess, zendit, packages);
  }

  get admin(): HttpClient {
    return this.office.admin;
  }

  async newBuyer(): Promise<LiveBuyer> {
    const answer = await this.admin.post('/internal/v1/partners', { name: 'Live Travel' });
    expect(answer.status, answer.text).toBe(201);
    const id = answer.body.data.id as string;
    return { id, api: this.api.partnerApi(await this.office.createKey(id, 'live')) };
  }

  spoil({ provider, control }: Fault): void {
    this[provider].control(control);
  }

  calm(): void {
    for (const fault of CALM) this.spoil(fault);
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.close()));
    await this.api.stop();
    await this.office.stop();
    await Promise.all([this.esimAccess.close(), this.zendit.close()]);
    await this.database.drop();
  }
}

async function waitForPackages(database: TestDatabase): Promise<readonly string[]> {
  const { pool } = database;
  const packages = await eventually('the live catalog is synchronized', async () => {
    const { rows } = await pool.query<{ package_id: string }>(
      `SELECT package_id FROM package_sources WHERE kind = 'base' AND upstream_id = ANY($1) ORDER BY 1`,
      [SOLD],
    );
    return rows.length === SOLD.length ? rows.map((row) => row.package_id) : null;
  });
  await topupsKnown(database);
  return packages;
}
