import { type DynamicModule, Inject, Injectable, Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import { CALL_LOG_TABLE } from '../call-log/index.js';
import { APP_CONFIG, type AppConfig, DEFAULT_RETENTION, type RetentionConfig } from '../config/index.js';
import { eventDays } from '../events/index.js';
import { DailyPartitions } from '../infra/daily-partitions.js';
import type { DailyTable } from '../infra/partition-days.js';
import { Transactions } from '../infra/database/index.js';
import { LOGGER } from '../infra/logging.js';
import { METRICS } from '../infra/metrics.js';
import { runEach } from '../infra/run-each.js';
import { AFTER_START_MS, Sweeps } from '../infra/sweeps.js';
import { attemptDays, deliveryDays, openDeliveriesNeed } from '../webhooks/index.js';
import { showPartitions } from './partition-metrics.js';

/** Every table partitioned by day. Deliveries precede events: a day's last open delivery releases its events' day. */
export function dailyTables(retention: RetentionConfig): readonly DailyTable[] {
  return [
    { table: CALL_LOG_TABLE, ranges: 'times', retentionDays: retention.callLogDays },
    attemptDays(retention.attemptDays),
    ...deliveryDays(retention.eventDays),
    ...eventDays(retention.eventDays, openDeliveriesNeed),
  ];
}

/**
 * Creates missing partitions. Call it before writing. If a later day cannot be created, for example by a role without
 * permission to create tables, the process still starts.
 * @throws AggregateError when today or tomorrow is missing
 */
export async function ensurePartitions(
  dataSource: DataSource,
  retention: RetentionConfig = DEFAULT_RETENTION,
): Promise<void> {
  const partitions = new DailyPartitions(dataSource.manager, new Transactions(dataSource));
  for (const daily of dailyTables(retention)) {
    try {
      await partitions.ensure(daily);
    } catch (error) {
      if (!(await partitions.coversTomorrow(daily))) throw error;
    }
  }
}

const EVERY_MS = 600_000;

/** Whether a role also drops old days. Every writing role creates new ones, because the worker may be down for days. */
type Upkeep = 'maintain' | 'ensure';
const UPKEEP = Symbol('UPKEEP');

/**
 * Creates partitions ahead of time, at start and periodically; in the worker it also drops those past their retention
 * (D44).
 */
@Injectable()
class PartitionUpkeep {
  constructor(
    @Inject(UPKEEP) private readonly upkeep: Upkeep,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'retention'>,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(METRICS) metrics: Registry,
    private readonly partitions: DailyPartitions,
    sweeps: Sweeps,
  ) {
    // The metrics cover the whole database, so one role is enough.
    if (upkeep === 'maintain') showPartitions(metrics, partitions, dailyTables(config.retention));
    sweeps.register({
      name: 'database.partitions',
      intervalMs: EVERY_MS,
      // `ensurePartitions` has already run at startup.
      firstAfterMs: upkeep === 'maintain' ? AFTER_START_MS : EVERY_MS,
      run: (stopping) => this.run(stopping),
    });
  }

  /** Processes every table, even if another one fails. @throws AggregateError */
  private async run(stopping: AbortSignal): Promise<void> {
    await runEach(dailyTables(this.config.retention), (daily) => this.keep(daily, stopping), { stopping });
  }

  private async keep(daily: DailyTable, stopping: AbortSignal): Promise<void> {
    const { created, dropped } =
      this.upkeep === 'maintain'
        ? await this.partitions.maintain(daily, stopping)
        : { created: await this.partitions.ensure(daily), dropped: [] };
    if (created.length + dropped.length === 0) return;
    const { table } = daily;
    this.logger.info({ event: 'database.partitions', table, created, dropped }, 'partitions maintained');
  }
}

@Module({})
export class PartitionsModule {
  static of(upkeep: Upkeep): DynamicModule {
    return {
      module: PartitionsModule,
      providers: [{ provide: UPKEEP, useValue: upkeep }, DailyPartitions, PartitionUpkeep],
    };
  }
}
