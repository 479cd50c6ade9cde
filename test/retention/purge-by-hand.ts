import { type Logger, pino } from 'pino';
import { dailyTables } from '../../src/apps/partitions.js';
import { DEFAULT_RETENTION, type RetentionConfig } from '../../src/config/index.js';
import { EsimsRepository } from '../../src/esims/index.js';
import { DailyPartitions } from '../../src/infra/daily-partitions.js';
import { dayOf } from '../../src/infra/partition-days.js';
import { Transactions } from '../../src/infra/database/index.js';
import { PastOrdersRepository } from '../../src/orders/index.js';
import { SandboxProviderRepository } from '../../src/providers/index.js';
import { PurgeSandboxOrders } from '../../src/retention/index.js';
import { TopupsRepository } from '../../src/topups/index.js';
import type { TestService } from '../harness/index.js';

/** The worker's purge of Sandbox orders, with the default settings. */
export function sandboxOrderPurge(
  service: TestService,
  logger: Logger = pino({ level: 'silent' }),
): PurgeSandboxOrders {
  const { nest } = service.process.admin!;
  return new PurgeSandboxOrders(
    { retention: DEFAULT_RETENTION },
    logger,
    nest.get(Transactions, { strict: false }),
    nest.get(PastOrdersRepository, { strict: false }),
    nest.get(EsimsRepository, { strict: false }),
    nest.get(TopupsRepository, { strict: false }),
    nest.get(SandboxProviderRepository, { strict: false }),
  );
}

/** Maintains every table with daily partitions once, and returns the dropped partitions. */
export async function maintainDays(
  service: TestService,
  retention: RetentionConfig = DEFAULT_RETENTION,
  stopping?: AbortSignal,
): Promise<readonly string[]> {
  const { dataSource } = service.process.resources;
  const partitions = new DailyPartitions(dataSource.manager, new Transactions(dataSource));
  const dropped: string[] = [];
  for (const daily of dailyTables(retention))
    dropped.push(...(await partitions.maintain(daily, stopping)).dropped);
  return dropped;
}

/** Creates partitions for old days of events and deliveries, as they were created at that time. */
export async function makeDays(service: TestService, ages: readonly number[]): Promise<void> {
  const { dataSource } = service.process.resources;
  const partitions = new DailyPartitions(dataSource.manager, new Transactions(dataSource));
  const openDays = () => Promise.resolve(ages.map((age) => dayOf(new Date(), -age)));
  const common = { retentionDays: 1, openDays };
  for (const mode of ['sandbox', 'live']) {
    await partitions.ensure({ table: `webhook_deliveries_${mode}`, ranges: 'times', ...common });
    await partitions.ensure({ table: `events_${mode}`, ranges: { idPrefix: 'evt' }, ...common });
  }
}
