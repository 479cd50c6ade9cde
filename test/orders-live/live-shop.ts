import { BullRegistrar } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { expect } from 'vitest';
import { openProcess, type ProcessResources } from '../../src/apps/process-resources.js';
import { WorkerModule } from '../../src/apps/worker.app.js';
import { loadConfig } from '../../src/config/index.js';
import { NestLogger } from '../../src/infra/logging.js';
import { ProviderRegistry } from '../../src/providers/index.js';
import {
  createTestDatabase,
  eventually,
  type HttpClient,
  startTestService,
  type TestDatabase,
  testEnvironment,
  type TestService,
} from '../harness/index.js';
import { addLivePackage } from '../harness/live-rows.js';
import type { Json } from '../harness/order-steps.js';
import { StubProvider } from './stub-wholesaler.js';

/** The price of one eSIM of the shop's only live package, in cents. */
export const PRICE = 450;
export const PACKAGE = 'pkg_live_stub';

export interface LiveBuyer {
  readonly id: string;
  readonly live: HttpClient;
}

/** API, admin API and worker on one database, with a stub as provider. */
export class LiveShop {
  readonly liveProvider = new StubProvider();
  private worker: { readonly app: INestApplicationContext; readonly resources: ProcessResources } | null =
    null;

  private constructor(
    readonly database: TestDatabase,
    readonly api: TestService,
    readonly office: TestService,
    private readonly env: Record<string, string>,
  ) {}

  static async open(more: Record<string, string> = {}): Promise<LiveShop> {
    // A lease expires only when a test expires it, however busy the machine is.
    const env = { LEASE_MS: '60000', ...more };
    const database = await createTestDatabase();
    const office = await startTestService({ role: 'admin', database, env });
    const api = await startTestService({ role: 'api', database, env });
    const shop = new LiveShop(database, api, office, env);
    for (const app of [api.process.api, office.process.admin]) {
      app!.nest.get(ProviderRegistry, { strict: false }).register(shop.liveProvider);
    }
    await addLivePackage(database, PACKAGE);
    await database.pool.query(
      `UPDATE packages SET price_amount = $2, currency = 'USD', available = true WHERE mode = 'live' AND id = $1`,
      [PACKAGE, PRICE],
    );
    await database.pool.query(
      `INSERT INTO package_sources (package_id, provider, upstream_id, kind, cost_micros, cost_currency)
       VALUES ($1, 'stub', 'UP-1', 'base', 2500000, 'USD')`,
      [PACKAGE],
    );
    return shop;
  }

  /** Starts a separate worker. Orders wait until there is one. */
  async startWorker(): Promise<void> {
    const config = loadConfig(testEnvironment(this.database.url, this.env));
    const resources = await openProcess(config, 'worker');
    const app = await Test.createTestingModule({ imports: [WorkerModule.of(resources)] })
      .setLogger(new NestLogger(resources.logger))
      .compile();
    await app.init();
    app.get(ProviderRegistry, { strict: false }).register(this.liveProvider);
    app.get(BullRegistrar, { strict: false }).register();
    this.worker = { app, resources };
  }

  /** Stops the worker after its current jobs. */
  async stopWorker(): Promise<void> {
    await this.worker?.app.close();
    await this.worker?.resources.close();
    this.worker = null;
  }

  async close(): Promise<void> {
    await this.stopWorker();
    await this.api.stop();
    await this.office.stop();
    await this.database.drop();
  }

  /** Creates a partner with a live key and `amount` cents. */
  async buyer(amount: number): Promise<LiveBuyer> {
    const { id } = await this.office.createPartner();
    const buyer = { id, live: this.api.partnerApi(await this.office.createKey(id, 'live')) };
    if (amount > 0) await this.deposit(id, amount);
    return buyer;
  }

  async deposit(partnerId: string, amount: number, reference = 'first-deposit'): Promise<void> {
    const answer = await this.office.admin.post(`/internal/v1/partners/${partnerId}/wallet/deposits`, {
      amount: { amount, currency: 'USD' },
      reference,
    });
    expect(answer.status, answer.text).toBe(201);
  }

  /** Waits until the order has none of the statuses in `open`, and returns it. */
  async settled(buyer: LiveBuyer, id: string, open = ['pending', 'processing', 'canceling']): Promise<Json> {
    return eventually(`order ${id} ends`, async () => {
      const { data } = (await buyer.live.get(`/v1/orders/${id}`)).body;
      return open.includes(data.status as string) ? null : (data as Json);
    });
  }

  async row(id: string): Promise<Json> {
    return (await this.database.pool.query<Json>('SELECT * FROM orders WHERE id = $1', [id])).rows[0]!;
  }
}

/** Places an order for the shop's package. */
export async function place(buyer: LiveBuyer, quantity = 1, more: object = {}): Promise<Json> {
  const answer = await buyer.live.post('/v1/orders', { package_id: PACKAGE, quantity, ...more });
  expect(answer.status, answer.text).toBe(202);
  return answer.body.data as Json;
}

/** The partner's dollar balance, in cents. */
export async function balance(
  buyer: LiveBuyer,
): Promise<{ posted: number; held: number; available: number }> {
  const { data } = (await buyer.live.get('/v1/balance')).body;
  expect(data).toHaveLength(1);
  const [{ posted, held, available }] = data;
  return { posted: posted.amount, held: held.amount, available: available.amount };
}

/** The partner's statement as type and cents, newest first. */
export async function statement(buyer: LiveBuyer): Promise<[string, number][]> {
  const { data } = (await buyer.live.get('/v1/transactions?limit=100')).body;
  return (data as Json[]).map((item) => [item['type'] as string, item['amount'].amount as number]);
}
