import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { expect } from 'vitest';
import { PlatformModule } from '../../src/apps/platform.module.js';
import { openProcess, type ProcessResources } from '../../src/apps/process-resources.js';
import { loadConfig } from '../../src/config/index.js';
import { NestLogger } from '../../src/infra/logging.js';
import { type EsimProvider, ProviderRegistry } from '../../src/providers/index.js';
import type { SyncOutcome } from '../../src/catalog-sync/catalog-sync.entity.js';
import { CatalogSyncWorkerModule } from '../../src/catalog-sync/index.js';
import { RefreshTopupFits } from '../../src/catalog-sync/worker/refresh-topup-fits.js';
import { SyncCatalog } from '../../src/catalog-sync/worker/sync-catalog.js';
import {
  createTestDatabase,
  eventually,
  type HttpClient,
  startTestService,
  type TestDatabase,
  testEnvironment,
  type TestService,
} from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { ScriptedProvider } from './scripted-provider.js';

/** A worker that has nothing but the catalog's synchronization, run by the test. */
export class SyncWorker {
  constructor(
    private readonly app: INestApplicationContext,
    private readonly resources: ProcessResources,
  ) {}

  /** One look at what is due. */
  runIfDue(): Promise<boolean> {
    return this.app.get(SyncCatalog, { strict: false }).runIfDue();
  }

  /** Asks for the top-ups of packages that are due, until none is. */
  async askTopups(): Promise<number> {
    let all = 0;
    for (;;) {
      const answered = await this.app.get(RefreshTopupFits, { strict: false }).runOnce();
      if (answered === 0) return all;
      all += answered;
    }
  }

  /** As when the process is told to end. */
  stop(): void {
    this.app.get(SyncCatalog, { strict: false }).stop();
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.resources.close();
  }
}

/** A synchronization as its row says. */
export interface Sync {
  readonly status: string;
  readonly result: Record<string, SyncOutcome>;
}

/** API and administration on one database, and workers that read the lists of two scripted providers. */
export class CatalogBench {
  readonly esimAccess = new ScriptedProvider('esim_access');
  readonly zendit = new ScriptedProvider('zendit');
  private readonly workers: SyncWorker[] = [];

  private constructor(
    readonly database: TestDatabase,
    readonly office: TestService,
    readonly partner: HttpClient,
    readonly partnerId: string,
  ) {}

  static async open(): Promise<CatalogBench> {
    const database = await createTestDatabase();
    const office = await startTestService({ database });
    const { id } = await office.createPartner();
    const partner = office.partnerApi(await office.createKey(id, 'live'));
    const bench = new CatalogBench(database, office, partner, id);
    for (const app of [office.process.api, office.process.admin]) bench.connect(app!.nest);
    return bench;
  }

  /** A new worker with these settings and providers, as after a restart. */
  async startWorker(
    env: Record<string, string> = {},
    upstreams: readonly EsimProvider[] = this.liveProviders(),
  ): Promise<SyncWorker> {
    const resources = await openProcess(loadConfig(testEnvironment(this.database.url, env)), 'worker');
    const app = await Test.createTestingModule({
      imports: [PlatformModule.of(resources), CatalogSyncWorkerModule],
    })
      .setLogger(new NestLogger(resources.logger))
      .compile();
    await app.init();
    this.connect(app, upstreams);
    const worker = new SyncWorker(app, resources);
    this.workers.push(worker);
    return worker;
  }

  /** No lists, no live packages, no workers: as if nothing had ever been synchronized. */
  async startAfresh(): Promise<void> {
    for (const worker of this.workers.splice(0)) await worker.close();
    for (const each of [this.esimAccess, this.zendit]) {
      each.packages = [];
      each.error = null;
    }
    await this.database.pool.query(
      `DELETE FROM packages WHERE mode = 'live';
       DELETE FROM package_sources;
       DELETE FROM topup_fits;
       DELETE FROM package_price_history;
       DELETE FROM catalog_syncs`,
    );
  }

  async close(): Promise<void> {
    await this.startAfresh();
    await this.office.stop();
    await this.database.drop();
  }

  /** Asks for a synchronization, as the portal team does, and has it done by this worker. */
  async sync(worker: SyncWorker): Promise<Sync> {
    const asked = await this.office.admin.post('/internal/v1/catalog/sync');
    expect(asked.status, asked.text).toBe(202);
    expect(await worker.runIfDue(), 'there is something to do').toBe(true);
    return this.row<Sync>('SELECT status, result FROM catalog_syncs WHERE id = $1', [asked.body.data.id]);
  }

  /** The newest synchronization. */
  newest(): Promise<Sync> {
    return this.row<Sync>('SELECT status, result FROM catalog_syncs ORDER BY started_at DESC LIMIT 1');
  }

  /** The catalog's version, which is what its ETags are made of. */
  async version(): Promise<number> {
    const sql = `SELECT version::int AS version FROM catalog_versions WHERE mode = 'live'`;
    return (await this.row<{ version: number }>(sql)).version;
  }

  /** The database's time, for `updated_since`. */
  async now(): Promise<string> {
    return (await this.row<{ now: Date }>('SELECT now()')).now.toISOString();
  }

  /** Ids of the packages that can be bought, of both providers. */
  async available(): Promise<string[]> {
    const sql = `SELECT id FROM packages WHERE mode = 'live' AND available ORDER BY id`;
    return (await this.database.pool.query<{ id: string }>(sql)).rows.map(({ id }) => id);
  }

  /** What the partner is told of a package, as soon as `holds` says that the API has noticed. */
  package(id: string, holds: (item: Json) => boolean): Promise<Json> {
    return eventually(`the API shows the new ${id}`, async () => {
      const answer = await this.partner.get(`/v1/catalog/${id}`);
      return answer.status === 200 && holds(answer.body.data as Json) ? (answer.body.data as Json) : null;
    });
  }

  /** Ids, prices and availability of what has changed since then. */
  async updatedSince(time: string): Promise<[string, number, boolean][]> {
    const answer = await this.partner.get(`/v1/catalog?limit=100&updated_since=${time}`);
    expect(answer.status, answer.text).toBe(200);
    return (answer.body.data as Json[]).map((item) => [
      item['id'] as string,
      item['price'].amount as number,
      item['available'] as boolean,
    ]);
  }

  /** Cost, price and availability of a package over time, the oldest first. */
  async history(id: string): Promise<[number, number, boolean][]> {
    const { rows } = await this.database.pool.query<{ cost: number; price: number; available: boolean }>(
      `SELECT cost_micros::int AS cost, price_amount::int AS price, available FROM package_price_history
       WHERE package_id = $1 ORDER BY changed_at`,
      [id],
    );
    return rows.map(({ cost, price, available }) => [cost, price, available]);
  }

  /** As if so many seconds had passed since the last synchronization began and ended. */
  async letPass(seconds: number): Promise<void> {
    await this.database.pool.query(
      `UPDATE catalog_syncs SET started_at = started_at - make_interval(secs => $1),
         ended_at = ended_at - make_interval(secs => $1), lease_until = lease_until - make_interval(secs => $1)`,
      [seconds],
    );
  }

  private liveProviders(): readonly EsimProvider[] {
    return [this.esimAccess, this.zendit].map((each) => each.asLiveProvider());
  }

  private connect(app: INestApplicationContext, upstreams = this.liveProviders()): void {
    const registry = app.get(ProviderRegistry, { strict: false });
    for (const each of upstreams) registry.register(each);
  }

  private async row<T extends object>(sql: string, parameters: readonly unknown[] = []): Promise<T> {
    return (await this.database.pool.query<T & Json>(sql, [...parameters])).rows[0]!;
  }
}
