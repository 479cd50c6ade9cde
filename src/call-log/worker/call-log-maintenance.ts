import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { Logger } from 'pino';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { IdempotencyKeysRepository } from '../../infra/idempotency/index.js';
import { LOGGER } from '../../infra/logging.js';
import { DailyPartitions } from '../../infra/daily-partitions.js';
import { Sweeps } from '../../infra/sweeps.js';

const PARTITIONS_EVERY_MS = 600_000;
const PURGE_EVERY_MS = 60_000;
const PURGE_BATCH_KEYS = 1_000;
const MAX_PURGE_BATCHES = 100;

/** Keeps the call log to its retention (D38) and the idempotency keys to theirs (D20), once at start and from then on. */
@Injectable()
export class CallLogMaintenance {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'callLogRetentionDays'>,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly partitions: DailyPartitions,
    private readonly idempotency: IdempotencyKeysRepository,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'call_log.partitions',
      intervalMs: PARTITIONS_EVERY_MS,
      run: () => this.maintainPartitions(),
    });
    sweeps.register({ name: 'idempotency.purge', intervalMs: PURGE_EVERY_MS, run: () => this.purgeKeys() });
  }

  /** Makes and drops the partitions of `api_calls`. */
  async maintainPartitions(): Promise<void> {
    const changes = await this.partitions.maintain({
      table: 'api_calls',
      column: 'created_at',
      retentionDays: this.config.callLogRetentionDays,
    });
    const { created, dropped, deletedRows } = changes;
    if (created.length + dropped.length + deletedRows === 0) return;
    this.logger.info({ event: 'call_log.partitions', ...changes }, 'call log partitions are maintained');
  }

  /** Deletes expired idempotency keys, batch by batch; answers how many. */
  async purgeKeys(): Promise<number> {
    let purged = 0;
    for (let batch = 0; batch < MAX_PURGE_BATCHES; batch++) {
      const deleted = await this.idempotency.purgeExpired(this.manager, PURGE_BATCH_KEYS);
      purged += deleted;
      if (deleted < PURGE_BATCH_KEYS) break;
    }
    return purged;
  }
}
