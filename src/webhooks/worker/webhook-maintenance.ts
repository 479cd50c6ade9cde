import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { LOGGER } from '../../infra/logging.js';
import { DailyPartitions } from '../../infra/daily-partitions.js';
import { Sweeps } from '../../infra/sweeps.js';
import { BacklogRepository } from './backlog.repository.js';

const PARTITIONS_EVERY_MS = 600_000;
const DISCARD_BATCH = 1_000;
const MAX_DISCARD_BATCHES = 50;

/** Keeps the attempts to their retention, by dropping days, and writes down what endpoints have given up (D32). */
@Injectable()
export class WebhookMaintenance {
  constructor(
    @Inject(APP_CONFIG) private readonly config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly partitions: DailyPartitions,
    private readonly backlog: BacklogRepository,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'webhooks.attempt_partitions',
      intervalMs: PARTITIONS_EVERY_MS,
      run: () => this.maintainPartitions(),
    });
    sweeps.register({
      name: 'webhooks.discards',
      intervalMs: config.sweepIntervalMs,
      run: () => this.discard(),
    });
  }

  /** Makes and drops the partitions of `webhook_attempts`. */
  async maintainPartitions(): Promise<void> {
    const changes = await this.partitions.maintain({
      table: 'webhook_attempts',
      column: 'started_at',
      retentionDays: this.config.webhooks.attemptRetentionDays,
    });
    const { created, dropped, deletedRows } = changes;
    if (created.length + dropped.length + deletedRows === 0) return;
    this.logger.info(
      { event: 'webhook.attempt_partitions', ...changes },
      'attempt partitions are maintained',
    );
  }

  private async discard(): Promise<void> {
    for (const endpointId of await this.backlog.listGivingUp()) await this.discardOf(endpointId);
    await this.backlog.forgetOldDiscards();
  }

  private async discardOf(endpointId: string): Promise<void> {
    let discarded = 0;
    for (let batch = 0; batch < MAX_DISCARD_BATCHES; batch++) {
      const count = await this.backlog.writeDiscards(endpointId, DISCARD_BATCH);
      discarded += count;
      if (count < DISCARD_BATCH) break;
    }
    if (discarded > 0) this.logger.info({ event: 'webhook.discarded', endpointId, count: discarded });
  }
}
