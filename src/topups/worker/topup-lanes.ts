import {
  Inject,
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { LOGGER } from '../../infra/logging/index.js';
import { InjectWakeUps, LeasedLanes, WakeUps } from '../../infra/queue/index.js';
import { ProviderOutcomeUnknown, ProviderUnavailable, retryDelayMs } from '../../providers/index.js';
import { TOPUP_WAKE_UPS } from '../topup-queue.js';
import { type TopupLease, TopupQueueRepository } from '../topup-queue.repository.js';
import { FulfilTopup } from './fulfil-topup.js';

/** Top-ups under way at once in one worker process, over all partners. */
const TOTAL_SLOTS = 64;

/** Works off the top-ups that are due, partner by partner; each partner has its own slots (D27, Fairness). */
@Injectable()
export class TopupLanes implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly lanes: LeasedLanes<TopupLease>;

  constructor(
    private readonly queue: TopupQueueRepository,
    private readonly fulfil: FulfilTopup,
    @InjectWakeUps(TOPUP_WAKE_UPS) wakeUps: WakeUps,
    @Inject(APP_CONFIG)
    config: Pick<AppConfig, 'provisioning' | 'sweepIntervalMs' | 'leaseMs' | 'shutdownTimeoutMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.lanes = new LeasedLanes({
      name: 'topups',
      table: queue,
      wakeUps,
      slotsPerLane: config.provisioning.concurrencyPerPartner,
      totalSlots: TOTAL_SLOTS,
      sweepIntervalMs: config.sweepIntervalMs,
      leaseMs: config.leaseMs,
      shutdownTimeoutMs: config.shutdownTimeoutMs,
      logger,
      perform: (lease) => this.perform(lease),
    });
  }

  onApplicationBootstrap(): void {
    this.lanes.start();
  }

  onModuleDestroy(): void {
    void this.lanes.stop();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.lanes.stop();
  }

  wake(lane: string): void {
    this.lanes.wake(lane);
  }

  private async perform(lease: TopupLease): Promise<void> {
    const topup = await this.queue.getById(lease.topupId);
    try {
      await this.fulfil.execute(lease, topup);
    } catch (error) {
      // Whatever went wrong, only the upstream's word ends a top-up (D22): it is looked at again.
      const known = error instanceof ProviderOutcomeUnknown || error instanceof ProviderUnavailable;
      this.logger[known ? 'warn' : 'error'](
        { event: 'topup.attempt_failed', topupId: topup.id, attempt: topup.attempts, err: error },
        'no answer from the upstream; the top-up is looked at again',
      );
      await this.queue.postpone(lease, retryDelayMs(topup.attempts, error), (error as Error).name);
    }
  }
}
