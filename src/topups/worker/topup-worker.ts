import { Processor } from '@nestjs/bullmq';
import { Inject } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG } from '../../config/index.js';
import { InjectNotifier, WorkerNotifier } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Tracer } from '../../infra/tracing/index.js';
import type { ProviderWorkerConfig } from '../../providers/index.js';
import { type ClaimedPurchase, PurchaseWorker } from '../../purchases/index.js';
import type { TopupEntity } from '../topup.js';
import { TOPUP_JOBS, TopupJobsRepository } from '../topup-jobs.repository.js';
import { FulfillTopup } from './fulfill-topup.js';

/** Buys and applies top-ups. */
@Processor(TOPUP_JOBS, { concurrency: 20 })
export class TopupWorker extends PurchaseWorker<TopupEntity> {
  constructor(
    jobs: TopupJobsRepository,
    private readonly fulfillTopup: FulfillTopup,
    @InjectNotifier(TOPUP_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) config: ProviderWorkerConfig,
    @Inject(LOGGER) logger: Logger,
    tracer: Tracer,
  ) {
    super(jobs, { concurrency: 64, notifier, config, logger, tracer });
  }

  protected override fulfill(claimed: ClaimedPurchase<TopupEntity>): Promise<boolean> {
    return this.fulfillTopup.fulfill(claimed);
  }
}
