import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { type BeforeApplicationShutdown, Inject } from '@nestjs/common';
import type { Job } from 'bullmq';
import type { Logger } from 'pino';
import { LOGGER } from '../../infra/logging/index.js';
import type { WakeUpJob } from '../../infra/queue/index.js';
import { TOPUP_WAKE_UPS } from '../topup-queue.js';
import { TopupLanes } from './topup-lanes.js';

/** Hands wake-ups to the lanes; the work itself never holds a slot of the queue. */
@Processor(TOPUP_WAKE_UPS, { concurrency: 20 })
export class TopupWakeUpsProcessor extends WorkerHost implements BeforeApplicationShutdown {
  constructor(
    private readonly lanes: TopupLanes,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    super();
  }

  override process(job: Job<WakeUpJob>): Promise<void> {
    for (const lane of job.data.lanes) this.lanes.wake(lane);
    return Promise.resolve();
  }

  @OnWorkerEvent('error')
  onError(error: Error): void {
    this.logger.warn(
      { event: 'queue.worker_error', queue: TOPUP_WAKE_UPS, err: error },
      'queue worker error',
    );
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.worker.close();
  }
}
