import { expect } from 'vitest';
import { SIMULATOR_CREDENTIALS } from '../../simulators/esim-access/simulator.js';
import { SIMULATOR_API_KEY } from '../../simulators/zendit/simulator.js';
import {
  createTestDatabase,
  eventually,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { topupsKnown } from '../harness/known-topups.js';
import { CALM, type Fault } from './faults.js';
import { SimulatorProcess } from './simulator-process.js';
import { WorkerProcess } from './worker-process.js';

/** A partner with a live key. */
export interface LiveBuyer {
  readonly id: string;
  readonly api: HttpClient;
}

/** Small base packages that take top-ups, two of each provider. */
const SOLD = ['PDE1D7', 'PTR1D7', 'ESIM-FR-7D-1GB', 'ESIM-ES-7D-1GB'];
const WORKERS = 2;
/** Longer than a scenario takes without a doubt that only support can end. */
export const NEEDS_REVIEW_AFTER_MS = 40_000;
const SETTINGS = {
  PROVIDER_REQUESTS_PER_SECOND: '2000',
  PROVIDER_TIMEOUT_MS: '2000',
  // Longer than a slow call takes to have its effect: a dead worker leaves nothing but the time of its claim.
  PROVIDER_READ_LAG_MS: '3500',
  LEASE_MS: '1500',
  SWEEP_INTERVAL_MS: '250',
  NEEDS_REVIEW_AFTER_MS: String(NEEDS_REVIEW_AFTER_MS),
};

/** The service in Live: API and administration here, two workers and both providers as processes. */
export class LiveService {
  private constructor(
    readonly database: TestDatabase,
    private readonly office: TestService,
    private readonly api: TestService,
    readonly workers: readonly WorkerProcess[],
    readonly esimAccess: SimulatorProcess,
    readonly zendit: SimulatorProcess,
    readonly packages: readonly string[],
  ) {}

  static async open(): Promise<LiveService> {
    const [database, esimAccess, zendit] = await Promise.all([
      createTestDatabase(),
      SimulatorProcess.start(['simulators/esim-access/main.ts', '--rate', '0']),
      SimulatorProcess.start(['simulators/zendit/main.ts']),
    ]);
    // Nothing here is about empty accounts: a thousand scenarios buy a lot.
    await Promise.all([esimAccess.control({ balance: 1e12 }), zendit.control({ balance: 1e11 })]);
    const env = {
      ...SETTINGS,
      ESIM_ACCESS_BASE_URL: esimAccess.url,
      ESIM_ACCESS_CODE: SIMULATOR_CREDENTIALS.accessCode,
      ESIM_ACCESS_SECRET: SIMULATOR_CREDENTIALS.secretKey,
      ZENDIT_BASE_URL: `${zendit.url}/v1`,
      ZENDIT_API_KEY: SIMULATOR_API_KEY,
    };
    const office = await startTestService({ role: 'admin', database, env });
    const api = await startTestService({ role: 'api', database, env });
    const workers = await Promise.all(
      Array.from({ length: WORKERS }, () => WorkerProcess.start(database.url, env)),
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

  spoil({ provider, control }: Fault): Promise<void> {
    return this[provider].control(control);
  }

  async calm(): Promise<void> {
    for (const fault of CALM) await this.spoil(fault);
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
  const packages = await eventually('the live catalogue is synchronised', async () => {
    const { rows } = await pool.query<{ package_id: string }>(
      `SELECT package_id FROM package_sources WHERE kind = 'base' AND upstream_id = ANY($1) ORDER BY 1`,
      [SOLD],
    );
    return rows.length === SOLD.length ? rows.map((row) => row.package_id) : null;
  });
  await topupsKnown(database);
  return packages;
}
