import type { EntityManager } from 'typeorm';
import { AlertsRepository } from '../../src/alerts/index.js';
import { CatalogHistoryRepository } from '../../src/catalog-sync/index.js';
import { DailyPartitions } from '../../src/infra/daily-partitions.js';
import type { DailyTable } from '../../src/infra/partition-days.js';
import { Transactions, type Tx } from '../../src/infra/database/index.js';
import { IdempotencyKeysRepository } from '../../src/infra/idempotency/index.js';
import { OrderJobsRepository } from '../../src/orders/index.js';
import { PurgeSandboxOrders } from '../../src/retention/worker/purge-sandbox-orders.js';
import { BacklogRepository } from '../../src/webhooks/worker/backlog.repository.js';
import { DeliveriesRepository } from '../../src/webhooks/worker/deliveries.repository.js';
import { type Discards, DiscardsRepository } from '../../src/webhooks/worker/discards.repository.js';
import { EndpointLeases } from '../../src/webhooks/worker/endpoint-leases.js';
import type { GrowthBed } from './bed.js';
import { endpointSlot, ownedId } from './fill-sql.js';
import type { Operation } from './operation.js';

/** What a step deletes at a time, in the measurement. */
const STEP_ROWS = 100;
/** Sweeps that read everything because that is what they are for, or that ask a provider. */
const NOT_MEASURED = /^(reconciliation|catalog|providers)/;
const FEW = 40;

/** What the worker does: claims, sweeps, purges, partitions. */
export function workerOperations(bed: GrowthBed): readonly Operation[] {
  return [...claims(bed), ...sweeps(bed), ...purges(bed), ...partitions(bed), backfill(bed)];
}

class UndoneError extends Error {}

/** Runs `work` in a transaction that is undone at the end: what it takes or deletes is there for the next sample. */
async function undone(bed: GrowthBed, work: (manager: EntityManager) => Promise<unknown>): Promise<void> {
  try {
    await bed.worker.resources.dataSource.transaction(async (manager) => {
      await work(manager);
      throw new UndoneError();
    });
  } catch (error) {
    if (!(error instanceof UndoneError)) throw error;
  }
}

/** A repository of the worker with the connection of one transaction. */
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
      run: (nth) =>
        undone(bed, (manager) =>
          within(orders, manager).claim(`${ownedId('ptn', 1 + (nth % 20), 0)}:sandbox`, 8),
        ),
    },
    {
      name: 'sweep: endpoints with due deliveries',
      run: async () => {
        await deliveries.listEndpointsDue(leases.owner, '', 500);
      },
    },
    {
      name: 'sweep: partners with due orders',
      run: async () => {
        await orders.listGroupsDue('', 500);
      },
    },
  ];
}

/** Each as it runs in the worker. What it finds to do is done in the warm-up: a sweep mostly finds nothing. */
function sweeps(bed: GrowthBed): Operation[] {
  return bed.worker.sweeps
    .filter(
      ({ name }) => !NOT_MEASURED.test(name) && !name.includes('purge') && !name.startsWith('retention'),
    )
    .filter(({ name }) => name !== 'database.partitions')
    .map((sweep) => ({
      name: `sweep: ${sweep.name}`,
      run: async () => {
        await sweep.run(new AbortController().signal);
      },
    }));
}

function purges(bed: GrowthBed): Operation[] {
  const { worker } = bed;
  const backlog = worker.get(BacklogRepository);
  const discards = worker.get(DiscardsRepository);
  const alerts = worker.get(AlertsRepository);
  const catalog = worker.get(CatalogHistoryRepository);
  const keys = worker.get(IdempotencyKeysRepository);
  const { retention } = worker.resources.config;
  const step = (name: string, purge: (manager: EntityManager) => Promise<unknown>): Operation => ({
    name: `purge step: ${name}`,
    samples: FEW,
    run: () => undone(bed, purge),
  });
  return [
    step(`${STEP_ROWS} alerts`, (manager) => within(alerts, manager).purge(retention.alertDays, STEP_ROWS)),
    step(`${STEP_ROWS} prices`, (manager) =>
      within(catalog, manager).purgePrices(retention.priceHistoryDays, STEP_ROWS),
    ),
    step(`${STEP_ROWS} catalogue syncs`, (manager) =>
      within(catalog, manager).purgeSyncs(retention.catalogSyncDays, STEP_ROWS),
    ),
    step(`${STEP_ROWS} backlog jobs`, (manager) =>
      within(backlog, manager).purgeJobs(retention.replayDays, STEP_ROWS),
    ),
    step(`${STEP_ROWS} deleted endpoints`, (manager) =>
      within(backlog, manager).purgeEndpoints(retention.deletedEndpointDays, STEP_ROWS),
    ),
    step(`${STEP_ROWS} held deliveries`, (manager) =>
      discardHeld(within(discards, manager), retention.eventDays.live),
    ),
    step(`${STEP_ROWS} idempotency keys`, (manager) => keys.purgeExpired(manager, STEP_ROWS)),
    step('50 sandbox orders with all that is theirs', (manager) => purgeOrders(bed, manager)),
  ];
}

async function discardHeld(discards: DiscardsRepository, days: number): Promise<void> {
  const held: Discards = { of: 'held', mode: 'live', days };
  await discards.discard(held, await discards.list(held, STEP_ROWS, []));
}

/** One step of the real purge, which is stopped behind it. */
async function purgeOrders(bed: GrowthBed, manager: EntityManager): Promise<void> {
  const stop = new AbortController();
  const transactions = {
    run: <T>(work: (tx: Tx) => Promise<T>): Promise<T> => {
      stop.abort();
      return work({ manager, afterCommit: () => undefined });
    },
  };
  const purge = bed.worker.get(PurgeSandboxOrders);
  const own = Object.create(purge, { transactions: { value: transactions } }) as PurgeSandboxOrders;
  if ((await own.execute(stop.signal)) === 0) throw new Error('no Sandbox order is past its retention');
}

/** A day that nobody has is made, and dropped: that of today would be in the way of the calls. */
function partitions(bed: GrowthBed): Operation[] {
  const { dataSource } = bed.worker.resources;
  const daily = new DailyPartitions(dataSource.manager, new Transactions(dataSource));
  const longAgo = new Date(Date.now() - 400 * 86_400_000);
  const tables = [
    { table: 'webhook_deliveries_live', ranges: 'times' },
    { table: 'events_live', ranges: { idPrefix: 'evt' } },
  ] as const;
  return tables.flatMap(({ table, ranges }): Operation[] => {
    const kept: DailyTable = { table, ranges, retentionDays: 300 };
    const open: DailyTable = { ...kept, openDays: () => Promise.resolve([longAgo]) };
    const make = async (): Promise<void> => {
      if ((await daily.ensure(open)).length !== 1) throw new Error(`no day of ${table} was made`);
    };
    const drop = async (): Promise<void> => {
      if ((await daily.maintain(kept)).dropped.length !== 1)
        throw new Error(`no day of ${table} was dropped`);
    };
    return [{ name: `partition made and dropped: ${table}`, samples: FEW, run: () => make().then(drop) }];
  });
}

/** A step of a backfill as migrations are to make them: by primary key, a batch, a transaction. */
function backfill(bed: GrowthBed): Operation {
  return {
    name: 'migration: a backfill batch of 100 orders',
    samples: FEW,
    run: (nth) =>
      undone(bed, (manager) =>
        manager.query(
          `UPDATE orders SET updated_at = updated_at WHERE id IN (SELECT id FROM orders WHERE id > $1 ORDER BY id LIMIT 100)`,
          [bed.picks.orders[nth % bed.picks.orders.length]],
        ),
      ),
  };
}
