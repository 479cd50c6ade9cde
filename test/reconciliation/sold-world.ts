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
import { type Json, placeOrder } from '../harness/order-steps.js';

type Provider = 'esim_access' | 'zendit';
const UPSTREAM_PACKAGES: Readonly<Record<Provider, string>> = {
  esim_access: 'PDE1D7',
  zendit: 'ESIM-FR-7D-1GB',
};
const OPEN = ['pending', 'processing', 'canceling'];

/** Ids of sold objects by how they ended. */
export interface Sold {
  readonly issued: string;
  readonly partly: string;
  readonly failed: string;
  readonly canceled: string;
  readonly zendit: string;
  readonly zenditCanceled: string;
  readonly topup: string;
  readonly failedTopup: string;
  readonly sandboxOrder: string;
}

/** The service with both providers' simulators, and a partner that buys in Live and in Sandbox. */
export class SoldWorld {
  private service: TestService | null = null;
  private live!: HttpClient;

  private constructor(
    readonly database: TestDatabase,
    readonly esimAccess: EsimAccessSimulator,
    readonly zendit: ZenditSimulator,
  ) {}

  static async open(): Promise<SoldWorld> {
    return new SoldWorld(
      await createTestDatabase(),
      await startEsimAccessSimulator({ requestsPerSecond: null }),
      await startZenditSimulator(),
    );
  }

  /** Settings with both providers. */
  get env(): Record<string, string> {
    return {
      ESIM_ACCESS_BASE_URL: this.esimAccess.url,
      ESIM_ACCESS_CODE: SIMULATOR_CREDENTIALS.accessCode,
      ESIM_ACCESS_SECRET: SIMULATOR_CREDENTIALS.secretKey,
      ZENDIT_BASE_URL: this.zendit.baseUrl,
      ZENDIT_API_KEY: this.zendit.apiKey,
      PROVIDER_REQUESTS_PER_SECOND: '500',
      PROVIDER_READ_LAG_MS: '0',
    };
  }

  /** Sells one of everything. */
  async sell(): Promise<Sold> {
    this.service = await startTestService({ database: this.database, env: this.env });
    const partner = await this.service.createPartner();
    const deposit = { amount: { amount: 100_000, currency: 'USD' }, reference: 'deposit' };
    await this.service.admin.post(`/internal/v1/partners/${partner.id}/wallet/deposits`, deposit);
    this.live = this.service.partnerApi(await this.service.createKey(partner.id, 'live'));
    const issued = await this.order('esim_access', 2);
    const canceled = await this.canceled('esim_access', 1);
    this.zendit.control({ outcomes: [null, 'OUT_OF_STOCK'] });
    const partly = await this.order('zendit', 2);
    this.esimAccess.control({ faults: { stock: 0 } });
    const failed = await this.order('esim_access', 1);
    this.esimAccess.control({ faults: { stock: null } });
    const zendit = await this.order('zendit', 1);
    const zenditCanceled = await this.canceled('zendit', 1);
    await topupsKnown(this.database);
    const topup = await this.topup(issued);
    this.zendit.control({ outcomes: ['OUT_OF_STOCK'] });
    const failedTopup = await this.topup(zendit);
    const sandboxOrder = (await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' }))['id'] as string;
    await this.ended(partner.sandbox, `/v1/orders/${sandboxOrder}`);
    return { issued, partly, failed, canceled, zendit, zenditCanceled, topup, failedTopup, sandboxOrder };
  }

  /** Stops the service, which closes all connections to the database. */
  async stopService(): Promise<void> {
    await this.service?.stop();
    this.service = null;
    await this.database.pool.end();
  }

  async close(): Promise<void> {
    await this.service?.stop();
    await this.esimAccess.close();
    await this.zendit.close();
  }

  private async order(provider: Provider, quantity: number): Promise<string> {
    const packageId = await this.package(provider);
    const { id } = await placeOrder(this.live, { package_id: packageId, quantity });
    await this.ended(this.live, `/v1/orders/${id}`);
    return id as string;
  }

  private async canceled(provider: Provider, quantity: number): Promise<string> {
    const id = await this.order(provider, quantity);
    await this.live.post(`/v1/orders/${id}/cancel`);
    expect((await this.ended(this.live, `/v1/orders/${id}`))['status']).toBe('canceled');
    return id;
  }

  private async topup(orderId: string): Promise<string> {
    const order = (await this.live.get(`/v1/orders/${orderId}`)).body.data;
    const esim = order.esims[0].esim_id as string;
    const [offered] = (await this.live.get(`/v1/esims/${esim}/topup-packages`)).body.data;
    const answer = await this.live.post('/v1/topups', { esim_id: esim, package_id: offered.id });
    expect(answer.status, answer.text).toBe(202);
    const id = answer.body.data.id as string;
    await this.ended(this.live, `/v1/topups/${id}`);
    return id;
  }

  private ended(api: HttpClient, path: string): Promise<Json> {
    return eventually(`${path} ends`, async () => {
      const { data } = (await api.get(path)).body;
      return OPEN.includes(data.status as string) ? null : (data as Json);
    });
  }

  private package(provider: Provider): Promise<string> {
    return eventually('the catalog is synchronized', async () => {
      const { rows } = await this.database.pool.query<{ package_id: string }>(
        'SELECT package_id FROM package_sources WHERE provider = $1 AND upstream_id = $2',
        [provider, UPSTREAM_PACKAGES[provider]],
      );
      return rows[0]?.package_id;
    });
  }
}
