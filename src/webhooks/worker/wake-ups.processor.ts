import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { type BeforeApplicationShutdown, Inject } from '@nestjs/common';
import type { Job } from 'bullmq';
import type { Logger } from 'pino';
import { LOGGER } from '../../infra/logging/index.js';
import type { WakeUpJob } from '../../infra/queue/index.js';
import { WEBHOOK_WAKE_UPS_QUEUE } from '../wake-ups.js';
import { DeliveryEngine } from './delivery-engine.js';

const CONCURRENCY = 8;

/** Passes wake-ups on. It ends at once, so that a job never waits for a receiver. */
@Processor(WEBHOOK_WAKE_UPS_QUEUE, { concurrency: CONCURRENCY })
export class WebhookWakeUpsProcessor extends WorkerHost implements BeforeApplicationShutdown {
  constructor(
    private readonly engine: DeliveryEngine,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    super();
  }

  override process(job: Job<WakeUpJob>): Promise<void> {
    for (const lane of job.data.lanes) this.engine.wake(lane);
    return Promise.resolve();
  }

  @OnWorkerEvent('error')
  onError(error: Error): void {
    this.logger.warn(
      { event: 'queue.worker_error', queue: WEBHOOK_WAKE_UPS_QUEUE, err: error },
      'queue worker error',
    );
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.worker.close();
  }
}
