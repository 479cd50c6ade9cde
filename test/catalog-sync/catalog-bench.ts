import type { INestApplicationContext, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { expect } from 'vitest';
import { PlatformModule } from '../../src/apps/platform.module.js';
import { openProcess, type ProcessResources } from '../../src/apps/process-resources.js';
import { loadConfig } from '../../src/config/index.js';
import { NestLogger } from '../../src/infra/logging.js';
import { type EsimProvider, ProviderRegistry } from '../../src/providers/index.js';
import type { SyncOutcome } from '../../src/catalog-sync/catalog-sync.entity.js';
import { CatalogSyncWorkerModule } from '../../src/catalog-sync/index.js';
import { AnnounceChanges } from '../../src/catalog-sync/worker/announce-changes.js';
import { RefreshTopupFits } from '../../src/catalog-sync/worker/refresh-topup-fits.js';
import { SyncCatalog } from '../../src/catalog-sync/worker/sync-catalog.js';
import { WebhooksCoreModule } from '../../src/webhooks/index.js';
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

/** A worker that only synchronizes the catalog, when the test calls it. */
export class SyncWorker {
  constructor(
    private readonly app: INestApplicationContext,
    private readonly resources: ProcessResources,
  ) {}

  /** Checks once for a due synchronization. */
  runIfDue(): Promise<boolean> {
    return this.app.get(SyncCatalog, { strict: false }).runIfDue();
  }

  get<T>(type: Type<T>): T {
    return this.app.get(type, { strict: false });
  }

  /** Announces the changes of ended synchronizations. */
  announce(): Promise<void> {
    return this.app.get(AnnounceChanges, { strict: false }).run();
  }

  /** Queries the top-ups of due packages until none is due. */
  async askTopups(): Promise<number> {
    let all = 0;
    for (;;) {
      const answered = await this.app.get(RefreshTopupFits, { strict: false }).runOnce();
      if (answered === 0) return all;
      all += answered;
    }
  }

  /** Stops as on a shutdown of the process. */
  stop(): void {
    this.app.get(SyncCatalog, { strict: false }).stop();
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.resources.close();
  }
}

/** A row of `catalog_syncs`. */
export interface Sync {
  readonly status: string;
  readonly result: Record<string, SyncOutcome>;
}

/** API and admin API on one database, and workers that read the lists of two scripted providers. */
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

  /** Starts a new worker with these settings and providers, as after a restart. */
  async startWorker(
    env: Record<string, string> = {},
    upstreams: readonly EsimProvider[] = this.liveProviders(),
  ): Promise<SyncWorker> {
    const resources = await openProcess(loadConfig(testEnvironment(this.database.url, env)), 'worker');
    const app = await Test.createTestingModule({
      imports: [PlatformModule.of(resources), WebhooksCoreModule, CatalogSyncWorkerModule],
    })
      .setLogger(new NestLogger(resources.logger))
      .compile();
    await app.init();
    this.connect(app, upstreams);
    const worker = new SyncWorker(app, resources);
    this.workers.push(worker);
    return worker;
  }

  /** Removes lists, live packages and workers, as if no synchronization had ever run. */
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

  /** Requests a synchronization like the portal team, and lets this worker run it. */
  async sync(worker: SyncWorker): Promise<Sync> {
    const asked = await this.office.admin.post('/internal/v1/catalog/sync');
    expect(asked.status, asked.text).toBe(202);
    expect(await worker.runIfDue(), 'there is something to do').toBe(true);
    return this.row<Sync>('SELECT status, result FROM catalog_syncs WHERE id = $1', [asked.body.data.id]);
  }

  newest(): Promise<Sync> {
    return this.row<Sync>('SELECT status, result FROM catalog_syncs ORDER BY started_at DESC LIMIT 1');
  }

  /** The catalog's version, from which its ETags are derived. */
  async version(): Promise<number> {
    const sql = `SELECT version::int AS version FROM catalog_versions WHERE mode = 'live'`;
    return (await this.row<{ version: number }>(sql)).version;
  }

  /** The database's time, for `updated_since`. */
  async now(): Promise<string> {
    return (await this.row<{ now: Date }>('SELECT now()')).now.toISOString();
  }

  /** Ids of the packages on sale, of both providers. */
  async available(): Promise<string[]> {
    const sql = `SELECT id FROM packages WHERE mode = 'live' AND available ORDER BY id`;
    return (await this.database.pool.query<{ id: string }>(sql)).rows.map(({ id }) => id);
  }

  /** Waits until `holds` accepts the package that the partner API returns, and returns it. */
  package(id: string, holds: (item: Json) => boolean): Promise<Json> {
    return eventually(`the API shows the new ${id}`, async () => {
      const answer = await this.partner.get(`/v1/catalog/${id}`);
      return answer.status === 200 && holds(answer.body.data as Json) ? (answer.body.data as Json) : null;
    });
  }

  /** Ids, prices and availability of packages changed since `time`. */
  async updatedSince(time: string): Promise<[string, number, boolean][]> {
    const answer = await this.partner.get(`/v1/catalog?limit=100&updated_since=${time}`);
    expect(answer.status, answer.text).toBe(200);
    return (answer.body.data as Json[]).map((item) => [
      item['id'] as string,
      item['price'].amount as number,
      item['available'] as boolean,
    ]);
  }

  /** Cost, price and availability of a package over time, oldest first. */
  async history(id: string): Promise<[number, number, boolean][]> {
    const { rows } = await this.database.pool.query<{ cost: number; price: number; available: boolean }>(
      `SELECT cost_micros::int AS cost, price_amount::int AS price, available FROM package_price_history
       WHERE package_id = $1 ORDER BY changed_at`,
      [id],
    );
    return rows.map(({ cost, price, available }) => [cost, price, available]);
  }

  /** Moves the last synchronization back by this many seconds. */
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
