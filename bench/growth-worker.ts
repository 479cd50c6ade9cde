import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import type { EntityManager } from 'typeorm';
import { AlertsRepository } from '../src/alerts/index.js';
import { openProcess, type ProcessResources } from '../src/apps/process-resources.js';
import { WorkerModule } from '../src/apps/worker.app.js';
import { CatalogHistoryRepository } from '../src/catalog-sync/index.js';
import { loadConfig } from '../src/config/index.js';
import { DailyPartitions } from '../src/infra/daily-partitions.js';
import { Transactions, type Tx } from '../src/infra/database/index.js';
import { IdempotencyKeysRepository } from '../src/infra/idempotency/index.js';
import type { DailyTable } from '../src/infra/partition-days.js';
import { Sweeps, type SweeperOptions } from '../src/infra/sweeps.js';
import { OrderJobsRepository } from '../src/orders/index.js';
import { PurgeSandboxOrders } from '../src/retention/worker/purge-sandbox-orders.js';
import { ReviewAlerts } from '../src/support/worker/review-alerts.js';
import { BacklogRepository } from '../src/webhooks/worker/backlog.repository.js';
import { DeliveriesRepository } from '../src/webhooks/worker/deliveries.repository.js';
import { type Discards, DiscardsRepository } from '../src/webhooks/worker/discards.repository.js';
import { EndpointLeases } from '../src/webhooks/worker/endpoint-leases.js';
import type { GrowthBed, Operation } from './growth.js';
import { endpointSlot, ownedId } from './growth-tables.js';

type Sweep = Omit<SweeperOptions, 'logger'>;

/** Rows deleted by one purge step. */
const STEP_ROWS = 100;
/** Sweeps that another subject measures, that read everything by design, or that call a provider. */
const NOT_MEASURED = /^(reconciliation|catalog|providers|retention|database\.partitions$)|purge/;
/** Sample count for operations that would slow down the operations after them. */
const FEW = 40;

/** The worker's classes, wired as in production, with its connections. No loop runs and no queue is read. */
export class WorkerParts {
  private constructor(
    private readonly module: TestingModule,
    readonly resources: ProcessResources,
    readonly sweeps: readonly Sweep[],
  ) {}

  static async open(env: Readonly<Record<string, string>>): Promise<WorkerParts> {
    const resources = await openProcess(loadConfig(env), 'worker');
    const sweeps: Sweep[] = [];
    const module = await Test.createTestingModule({ imports: [WorkerModule.of(resources)] })
      .overrideProvider(Sweeps)
      .useValue({ register: (sweep: Sweep) => void sweeps.push(sweep) })
      .compile();
    module.get(ReviewAlerts, { strict: false }).onApplicationBootstrap();
    return new WorkerParts(module, resources, sweeps);
  }

  get<T>(part: Type<T>): T {
    return this.module.get(part, { strict: false });
  }

  /** The module was never started, so only its connections need closing. */
  async stop(): Promise<void> {
    await this.resources.close();
  }
}

/** The worker's claims, sweeps, purge steps and partition maintenance, and one batch of a migration. */
export function workerOperations(bed: GrowthBed): readonly Operation[] {
  return [...claims(bed), ...sweeps(bed), ...purges(bed), ...partitions(bed), backfill(bed)];
}

class UndoneError extends Error {}

/** Runs `work` and rolls its transaction back, so that the next sample finds the same rows. */
async function undone(
  { worker }: GrowthBed,
  work: (manager: EntityManager) => Promise<unknown>,
): Promise<void> {
  try {
    await worker.resources.dataSource.transaction(async (manager) => {
      await work(manager);
      throw new UndoneError();
    });
  } catch (error) {
    if (!(error instanceof UndoneError)) throw error;
  }
}

/** Binds a worker repository to the connection of one transaction. */
function within<T extends object>(part: T, manager: EntityManager): T {
  return Object.create(part, { manager: { value: manager } }) as T;
}

function claims(bed: GrowthBed): Operation[] {
  const deliveries = bed.worker.get(DeliveriesRepository);
  const leases = bed.worker.get(EndpointLeases);
  const orders = bed.worker.get(OrderJobsRepository);
  return [
    {
      name: 'claim of due deliveries (16 of an endpoint)',
      run: async (nth) => {
        const id = ownedId('whe', 1 + (nth % 40), endpointSlot('live', nth % 3));
        await leases.acquire([id]);
        const endpoint = leases.get(id)!;
        await deliveries.claim(leases.owner, [{ endpointId: id, fence: endpoint.fence, free: 16 }]);
        await leases.release([endpoint]);
      },
    },
    {
      name: 'claim of due orders (8 of a partner)',
      run: (nth) => {
        const group = `${ownedId('ptn', 1 + (nth % 20), 0)}:sandbox`;
        return undone(bed, (manager) => within(orders, manager).claim(group, 8));
      },
    },
    {
      name: 'sweep: endpoints with due deliveries',
      run: () => deliveries.listEndpointsDue(leases.owner, '', 500),
    },
    { name: 'sweep: partners with due orders', run: () => orders.listGroupsDue('', 500) },
  ];
}

/** The worker's own sweeps. The warm-up does the pending work, so measured sweeps mostly find nothing. */
function sweeps({ worker }: GrowthBed): Operation[] {
  return worker.sweeps
    .filter(({ name }) => !NOT_MEASURED.test(name))
    .map((sweep) => ({
      name: `sweep: ${sweep.name}`,
      run: () => Promise.resolve(sweep.run(new AbortController().signal)),
    }));
}

function purges(bed: GrowthBed): Operation[] {
  const { worker } = bed;
  const backlog = worker.get(BacklogRepository);
  const discards = worker.get(DiscardsRepository);
  const alerts = worker.get(AlertsRepository);
  const catalog = worker.get(CatalogHistoryRepository);
  const keys = worker.get(IdempotencyKeysRepository);
  const days = worker.resources.config.retention;
  const held: Discards = { of: 'held', mode: 'live', days: days.eventDays.live };
  const steps: Readonly<Record<string, (manager: EntityManager) => Promise<unknown>>> = {
    alerts: (manager) => within(alerts, manager).purge(days.alertDays, STEP_ROWS),
    prices: (manager) => within(catalog, manager).purgePrices(days.priceHistoryDays, STEP_ROWS),
    'catalog syncs': (manager) => within(catalog, manager).purgeSyncs(days.catalogSyncDays, STEP_ROWS),
    'backlog jobs': (manager) => within(backlog, manager).purgeJobs(days.replayDays, STEP_ROWS),
    'deleted endpoints': (manager) =>
      within(backlog, manager).purgeEndpoints(days.deletedEndpointDays, STEP_ROWS),
    'held deliveries': async (manager) => {
      const own = within(discards, manager);
      await own.discard(held, await own.list(held, STEP_ROWS, []));
    },
    'idempotency keys': (manager) => keys.purgeExpired(manager, STEP_ROWS),
  };
  return [
    ...Object.entries(steps).map(([name, purge]) => ({
      name: `purge step: ${STEP_ROWS} ${name}`,
      samples: FEW,
      run: () => undone(bed, purge),
    })),
    {
      name: 'purge step: 50 sandbox orders with their dependent rows',
      samples: FEW,
      run: () => undone(bed, (manager) => purgeOrders(worker.get(PurgeSandboxOrders), manager)),
    },
  ];
}

/** Runs the real purge and stops it after one step. */
async function purgeOrders(purge: PurgeSandboxOrders, manager: EntityManager): Promise<void> {
  const stop = new AbortController();
  const transactions = {
    run: <T>(work: (tx: Tx) => Promise<T>): Promise<T> => {
      stop.abort();
      return work({ manager, afterCommit: () => undefined });
    },
  };
  const own = Object.create(purge, { transactions: { value: transactions } }) as PurgeSandboxOrders;
  if ((await own.purge(stop.signal)) === 0) throw new Error('no Sandbox order is past its retention');
}

/** Creates and drops an empty day. Dropping today's partition would block calls. */
function partitions({ worker }: GrowthBed): Operation[] {
  const { dataSource } = worker.resources;
  const daily = new DailyPartitions(dataSource.manager, new Transactions(dataSource));
  const longAgo = new Date(Date.now() - 400 * 86_400_000);
  const tables = [
    { table: 'webhook_deliveries_live', ranges: 'times' },
    { table: 'events_live', ranges: { idPrefix: 'evt' } },
  ] as const;
  return tables.map(({ table, ranges }) => ({
    name: `partition created and dropped: ${table}`,
    samples: FEW,
    run: async () => {
      const kept: DailyTable = { table, ranges, retentionDays: 300 };
      const created = await daily.ensure({ ...kept, openDays: () => Promise.resolve([longAgo]) });
      const { dropped } = await daily.maintain(kept);
      if (created.length !== 1 || dropped.length !== 1)
        throw new Error(`${created.length} days of ${table} were created, ${dropped.length} dropped`);
    },
  }));
}

/** A migration's backfill, which walks the primary key with one transaction per batch. */
function backfill(bed: GrowthBed): Operation {
  const sql = `UPDATE orders SET updated_at = updated_at WHERE id IN (SELECT id FROM orders WHERE id > $1 ORDER BY id LIMIT 100)`;
  return {
    name: 'migration: a backfill batch of 100 orders',
    samples: FEW,
    run: (nth) =>
      undone(bed, (manager) => manager.query(sql, [bed.picks.orders[nth % bed.picks.orders.length]])),
  };
}
