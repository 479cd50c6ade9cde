import { Processor } from '@nestjs/bullmq';
import { Inject } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG } from '../../config/index.js';
import { InjectNotifier, type JobEnd, JobWorker, WorkerNotifier } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import {
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type ProviderWorkerConfig,
  providerWorkerOptions,
  retryDelayMs,
} from '../../providers/index.js';
import { type ClaimedTopup, TOPUP_JOBS, TopupJobsRepository } from '../topup-jobs.repository.js';
import { FulfilTopup } from './fulfil-topup.js';

/** Top-ups under way at once in one worker process, over all partners. */
const CONCURRENCY = 64;
/** Of them, kept for partners that have none under way: however many are busy, the next one finds a slot (D41). */
const KEPT_FOR_OTHERS = 1 / 4;

/** Works off the top-ups that are due, partner by partner; each partner has its own concurrency (D27, Fairness). */
@Processor(TOPUP_JOBS, { concurrency: 20 })
export class TopupWorker extends JobWorker<ClaimedTopup> {
  constructor(
    private readonly jobs: TopupJobsRepository,
    private readonly fulfil: FulfilTopup,
    @InjectNotifier(TOPUP_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) config: ProviderWorkerConfig,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    super(jobs, {
      ...providerWorkerOptions(config),
      name: 'topups',
      concurrency: CONCURRENCY,
      keptForOthers: KEPT_FOR_OTHERS,
      notifier,
      logger,
    });
  }

  protected override async run(lease: ClaimedTopup): Promise<JobEnd> {
    const { topup } = lease;
    try {
      await this.fulfil.execute(lease);
    } catch (error) {
      // Whatever went wrong, only the provider's answer ends a top-up (D22): it is asked for again.
      const known = error instanceof ProviderOutcomeUnknown || error instanceof ProviderUnavailable;
      this.logger[known ? 'warn' : 'error'](
        { event: 'topup.attempt_failed', topupId: topup.id, attempt: topup.attempts, err: error },
        'no answer from the upstream; the top-up is tried again',
      );
      await this.jobs.postpone(lease, retryDelayMs(topup.attempts, error), (error as Error).name);
    }
    return { refetch: true };
  }
}
