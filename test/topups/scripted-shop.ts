import { expect } from 'vitest';
import { EsimObserver, EsimsRepository } from '../../src/esims/index.js';
import { databaseNow, Transactions } from '../../src/infra/database/index.js';
import { ProviderRegistry } from '../../src/providers/index.js';
import type { TopupEntity } from '../../src/topups/index.js';
import { PlaceTopup } from '../../src/topups/place-topup.js';
import {
  createTestDatabase,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { copyToLive, rowsOf } from '../harness/live-rows.js';
import { type Json, orderEnded, placeOrder } from '../harness/order-steps.js';
import { type Answer, type ScriptedWorker, ScriptedUpstream, startWorkerWith } from './scripted-upstream.js';
import { BASE, TOPUP_1GB_7D, TOPUP_DAYS } from './topup-steps.js';

/** The partner's price of a live top-up, in cents. */
export const PRICE = 400;

export interface TopupBuyer {
  readonly id: string;
  /** A client with the partner's live key. */
  readonly live: HttpClient;
  readonly esimId: string;
}

/** A partner with a live eSIM, whose top-ups of 1 GB and 7 days are bought from a scripted provider. */
export class ScriptedShop {
  private constructor(
    readonly upstream: ScriptedUpstream,
    readonly database: TestDatabase,
    readonly office: TestService,
    private readonly front: TestService,
    private worker: ScriptedWorker | null,
    readonly partnerId: string,
    /** A client with the partner's live key. */
    readonly live: HttpClient,
    readonly esimId: string,
    private readonly env: Record<string, string>,
  ) {}

  /** @param deposit the partner's balance in cents */
  static async open(deposit: number, more: Record<string, string> = {}): Promise<ScriptedShop> {
    // A lease expires only when a test expires it, however busy the machine is.
    const env = { LEASE_MS: '60000', ...more };
    const upstream = new ScriptedUpstream();
    const database = await createTestDatabase();
    const [office, front] = await Promise.all([
      startTestService({ role: 'admin', database, env }),
      startTestService({ role: 'api', database, env }),
    ]);
    office.process.admin!.nest.get(ProviderRegistry, { strict: false }).register(upstream);
    const worker = await startWorkerWith(upstream, database, env);
    await sellInLive(database, upstream);
    const { id, live, esimId } = await openBuyer(upstream, database, office, front, deposit);
    return new ScriptedShop(upstream, database, office, front, worker, id, live, esimId, env);
  }

  /** Creates another partner with a live eSIM and `deposit` cents. */
  buyer(deposit: number): Promise<TopupBuyer> {
    return openBuyer(this.upstream, this.database, this.office, this.front, deposit);
  }

  /** Also connects the partner API's process to the scripted provider. */
  connectPartnerApi(): void {
    this.front.process.api!.nest.get(ProviderRegistry, { strict: false }).register(this.upstream);
  }

  /** Stops the worker after its current jobs. */
  async stopWorker(): Promise<void> {
    const { worker } = this;
    this.worker = null;
    await worker?.stop();
  }

  async startWorker(): Promise<void> {
    this.worker ??= await startWorkerWith(this.upstream, this.database, this.env);
  }

  async close(): Promise<void> {
    await this.stopWorker();
    await Promise.all([this.front.stop(), this.office.stop()]);
    await this.database.drop();
  }

  /** Accepts a top-up in the worker's process, because only that process knows the scripted provider. */
  async accept(answers: readonly Answer[]): Promise<TopupEntity> {
    const { app } = this.worker!;
    return app.get(Transactions, { strict: false }).run(async (tx) => {
      const accepted = await app.get(PlaceTopup, { strict: false }).place(
        tx,
        { partnerId: this.partnerId, mode: 'live' },
        {
          esimId: this.esimId,
          packageId: TOPUP_1GB_7D,
          reference: null,
          days: null,
          maxPrice: null,
          metadata: {},
          requestId: 'req_test',
          idempotencyKey: null,
          limitedKeyId: null,
          autoTopupId: null,
        },
      );
      this.upstream.script(accepted.providerReference, answers);
      return accepted;
    });
  }

  /** Applies a provider's report that `percent` of the eSIM's data is used. */
  use(esimId: string, percent: number, status: 'active' | 'suspended' = 'active'): Promise<void> {
    const { app } = this.worker!;
    return app.get(Transactions, { strict: false }).run(async (tx) => {
      const esim = (await app.get(EsimsRepository, { strict: false }).findByIdForUpdate(tx, esimId))!;
      const asOf = await databaseNow(tx);
      const reading = {
        providerEsimId: esim.providerEsimId,
        status,
        profileStatus: 'enabled',
        usedBytes: (esim.totalBytes! * percent) / 100,
        totalBytes: esim.totalBytes,
        goesOn: false,
        plans: null,
        activatedAt: esim.activatedAt,
        expiresAt: null,
        asOf,
      } as const;
      const report = { reading, source: 'poll', askedAt: asOf } as const;
      await app.get(EsimObserver, { strict: false }).applyUsageReports(tx, [{ esim, report }]);
    });
  }

  /** The partner API with another key. */
  client(key: string): HttpClient {
    return this.front.partnerApi(key);
  }

  /** Posted, held and available, in cents. */
  balance(): Promise<[number, number, number]> {
    return balanceOf(this.live);
  }

  async row(topupId: string): Promise<Json> {
    const { rows } = await this.database.pool.query<Json>('SELECT * FROM topups WHERE id = $1', [topupId]);
    return rows[0]!;
  }
}

/** Posted, held and available, in cents. */
export async function balanceOf(live: HttpClient): Promise<[number, number, number]> {
  const [usd] = (await live.get('/v1/balance')).body.data as Json[];
  return [usd!['posted'].amount as number, usd!['held'].amount as number, usd!['available'].amount as number];
}

async function openBuyer(
  upstream: ScriptedUpstream,
  database: TestDatabase,
  office: TestService,
  front: TestService,
  deposit: number,
): Promise<TopupBuyer> {
  const { id, sandboxKey } = await office.createPartner();
  const live = front.partnerApi(await office.createKey(id, 'live'));
  const esimId = await liveEsim(database, upstream, front.partnerApi(sandboxKey));
  const answer = await office.admin.post(`/internal/v1/partners/${id}/wallet/deposits`, {
    amount: { amount: deposit, currency: 'USD' },
    reference: 'first-deposit',
  });
  expect(answer.status, answer.text).toBe(201);
  return { id, live, esimId };
}

/** Sells the base package and two top-ups in live. The days-only top-up belongs to another provider. */
async function sellInLive({ pool }: TestDatabase, upstream: ScriptedUpstream): Promise<void> {
  await pool.query(
    `INSERT INTO packages SELECT (jsonb_populate_record(p, jsonb_build_object('mode', 'live', 'price_amount', $2::int))).*
     FROM packages p WHERE mode = 'sandbox' AND id = ANY ($1)`,
    [[BASE, TOPUP_1GB_7D, TOPUP_DAYS], PRICE],
  );
  await pool.query(`UPDATE catalog_versions SET version = version + 1`);
  await pool.query(
    `INSERT INTO package_sources (package_id, provider, upstream_id, kind, cost_micros, cost_currency)
     VALUES ($1, $2, 'TOPUP_UP_1', 'topup', 2500000, 'USD'), ($3, 'another', 'DAYS_1', 'topup', 1, 'USD')`,
    [TOPUP_1GB_7D, upstream.name, TOPUP_DAYS],
  );
}

async function liveEsim(
  database: TestDatabase,
  upstream: ScriptedUpstream,
  sandbox: HttpClient,
): Promise<string> {
  const { id } = await placeOrder(sandbox, { package_id: BASE });
  await orderEnded(sandbox, id as string);
  const rows = await copyToLive(database, await rowsOf(database, id as string));
  await database.pool.query('UPDATE esims SET provider = $2 WHERE id = $1', [rows.esimId, upstream.name]);
  return rows.esimId;
}
