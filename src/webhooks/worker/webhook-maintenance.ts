import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Sweeps } from '../../infra/sweeps.js';
import { BacklogRepository } from './backlog.repository.js';

const DISCARD_BATCH = 1_000;
const MAX_DISCARD_BATCHES = 50;

/** Writes down what endpoints have given up (D32). */
@Injectable()
export class WebhookMaintenance {
  constructor(
    @Inject(APP_CONFIG) config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly backlog: BacklogRepository,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'webhooks.discards',
      intervalMs: config.sweepIntervalMs,
      run: () => this.discard(),
    });
  }

  private async discard(): Promise<void> {
    for (const endpointId of await this.backlog.listGivingUp()) await this.discardOf(endpointId);
    await this.backlog.forgetOldDiscards();
    await this.backlog.endAbandoned(DISCARD_BATCH);
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
