import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import {
  type EsimAccessSimulator,
  SIMULATOR_CREDENTIALS,
  startEsimAccessSimulator,
} from '../../simulators/esim-access/simulator.js';
import { startZenditSimulator, type ZenditSimulator } from '../../simulators/zendit/simulator.js';
import { EsimDevice } from '../harness/esim-device.js';
import {
  createTestDatabase,
  eventually,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { issueEsims, type Json } from '../harness/order-steps.js';

/** The secret part of the callback path. */
export const SECRET = randomBytes(20).toString('hex');

/** Packages of 1 GB for 7 days, as the simulators list them. */
const UPSTREAM_PACKAGES = { esim_access: 'PDE1D7', zendit: 'ESIM-FR-7D-1GB' } as const;
export type Provider = keyof typeof UPSTREAM_PACKAGES;

export interface LiveEsim {
  readonly id: string;
  readonly orderId: string;
  /** The provider's id of the eSIM. */
  readonly upstreamId: string;
  readonly iccid: string;
}

/** The whole service with both providers' simulators, and a partner that buys from them. */
export class LiveWorld {
  readonly device: EsimDevice;

  private constructor(
    readonly database: TestDatabase,
    readonly service: TestService,
    readonly esimAccess: EsimAccessSimulator,
    readonly zendit: ZenditSimulator,
    readonly partner: HttpClient,
  ) {
    this.device = new EsimDevice(partner);
  }

  static async open(more: Record<string, string> = {}): Promise<LiveWorld> {
    const database = await createTestDatabase();
    const esimAccess = await startEsimAccessSimulator({ requestsPerSecond: null });
    const zendit = await startZenditSimulator();
    const env = {
      ESIM_ACCESS_BASE_URL: esimAccess.url,
      ESIM_ACCESS_CODE: SIMULATOR_CREDENTIALS.accessCode,
      ESIM_ACCESS_SECRET: SIMULATOR_CREDENTIALS.secretKey,
      ZENDIT_BASE_URL: zendit.baseUrl,
      ZENDIT_API_KEY: zendit.apiKey,
      PROVIDER_REQUESTS_PER_SECOND: '200',
      PROVIDER_READ_LAG_MS: '0',
      // Long enough that a busy worker keeps its work and no other worker repeats it.
      LEASE_MS: '15000',
      CALLBACK_HOST: '127.0.0.1',
      CALLBACK_PORT: '0',
      CALLBACK_SECRET: SECRET,
      ...more,
    };
    const service = await startTestService({ database, env });
    const { id } = await service.createPartner();
    const deposit = { amount: { amount: 1_000_000, currency: 'USD' }, reference: 'deposit' };
    const answer = await service.admin.post(`/internal/v1/partners/${id}/wallet/deposits`, deposit);
    expect(answer.status, answer.text).toBe(201);
    const partner = service.partnerApi(await service.createKey(id, 'live'));
    return new LiveWorld(database, service, esimAccess, zendit, partner);
  }

  /** The URL for a provider's callbacks. */
  callbackUrl(provider: string, secret = SECRET): string {
    return `${this.service.process.callbacksUrl}/callbacks/${provider}/${secret}`;
  }

  callBack(provider: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    const headers = { 'content-type': 'application/json', ...(init.headers as Record<string, string>) };
    const sent = { method: 'POST', body: JSON.stringify(body), ...init, headers };
    return fetch(this.callbackUrl(provider), sent);
  }

  async package(provider: Provider): Promise<string> {
    return eventually('the catalog is synchronized', async () => {
      const { rows } = await this.database.pool.query<{ package_id: string }>(
        'SELECT package_id FROM package_sources WHERE provider = $1 AND upstream_id = $2',
        [provider, UPSTREAM_PACKAGES[provider]],
      );
      return rows[0]?.package_id;
    });
  }

  /** Issues the eSIMs of one order at the provider's simulator. */
  async issue(provider: Provider, quantity = 1): Promise<readonly LiveEsim[]> {
    const ids = await issueEsims(this.partner, await this.package(provider), quantity);
    return Promise.all(
      ids.map(async (id) => {
        const row = await this.row(id);
        return { id, orderId: row['order_id'], upstreamId: row['provider_esim_id'], iccid: row['iccid'] };
      }),
    );
  }

  async issueOne(provider: Provider): Promise<LiveEsim> {
    return (await this.issue(provider))[0]!;
  }

  async row(id: string): Promise<Json> {
    return (await this.database.pool.query<Json>('SELECT * FROM esims WHERE id = $1', [id])).rows[0]!;
  }

  /** Waits until the eSIM's row has these values. */
  async rowWith(id: string, columns: Json): Promise<Json> {
    return eventually(`eSIM ${id} has ${JSON.stringify(columns)}`, async () => {
      const row = await this.row(id);
      return Object.entries(columns).every(([name, value]) => row[name] === value) ? row : null;
    });
  }

  /** Makes these eSIMs due for a poll, and waits until they were polled. */
  async poll(...esims: readonly LiveEsim[]): Promise<void> {
    const ids = esims.map((esim) => esim.id);
    const { pool } = this.database;
    const { rows } = await pool.query<{ now: Date }>(
      'UPDATE esims SET next_poll_at = now() WHERE id = ANY($1) RETURNING now() AS now',
      [ids],
    );
    await eventually('the eSIMs are polled', async () => {
      // A poll that was in progress reschedules the next one when it ends, so make it due again.
      await pool.query(
        `UPDATE esims SET next_poll_at = now() WHERE id = ANY($1) AND polled_at < $2
           AND poll_lease_until IS NULL AND next_poll_at > now()`,
        [ids, rows[0]!.now],
      );
      const still = await pool.query(
        `SELECT 1 FROM esims WHERE id = ANY($1)
           AND (polled_at IS NULL OR polled_at < $2 OR poll_lease_until IS NOT NULL)`,
        [ids, rows[0]!.now],
      );
      return still.rowCount === 0;
    });
  }

  /** Changes the state of an eSIM at eSIM Access, as its device and network would. */
  change(esim: LiveEsim, changes: object): void {
    this.esimAccess.control({ esim: { esimTranNo: esim.upstreamId, ...changes } });
  }

  async close(): Promise<void> {
    await this.service.stop();
    await this.esimAccess.close();
    await this.zendit.close();
    await this.database.drop();
  }
}

/** An eSIM in use for an hour, in the format of eSIM Access. */
export function inUse(share: number): object {
  const startedMs = Date.now() - 3_600_000;
  return {
    ...{ esimStatus: 'IN_USE', smdpStatus: 'ENABLED', eid: '89049032' },
    ...{ activateTimeMs: startedMs, expiredTimeMs: startedMs + 7 * 86_400_000 },
    ...{ orderUsage: Math.ceil(share * 1_073_741_824), usageReadAtMs: Date.now() },
  };
}
