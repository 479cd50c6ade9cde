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
import { ORDER_WAKE_UPS } from '../order-queue.js';
import { type ClaimedOrder, OrderQueueRepository } from '../order-queue.repository.js';
import { FulfilOrder } from './fulfil-order.js';
import { SettleCancellation } from './settle-cancellation.js';

/** Orders under way at once in one worker process, over all partners. */
const TOTAL_SLOTS = 128;

/** Works off the orders that are due, partner by partner; each partner has its own slots (D27, Fairness). */
@Injectable()
export class OrderLanes implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly lanes: LeasedLanes<ClaimedOrder>;

  constructor(
    private readonly queue: OrderQueueRepository,
    private readonly fulfil: FulfilOrder,
    private readonly cancellation: SettleCancellation,
    @InjectWakeUps(ORDER_WAKE_UPS) wakeUps: WakeUps,
    @Inject(APP_CONFIG)
    config: Pick<AppConfig, 'provisioning' | 'sweepIntervalMs' | 'leaseMs' | 'shutdownTimeoutMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.lanes = new LeasedLanes<ClaimedOrder>({
      name: 'orders',
      table: queue,
      wakeUps,
      slotsPerLane: config.provisioning.concurrencyPerPartner,
      totalSlots: TOTAL_SLOTS,
      sweepIntervalMs: config.sweepIntervalMs,
      leaseMs: config.leaseMs,
      shutdownTimeoutMs: config.shutdownTimeoutMs,
      logger,
      perform: (claimed) => this.perform(claimed),
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

  private async perform(claimed: ClaimedOrder): Promise<void> {
    const order = await this.queue.getById(claimed.orderId);
    try {
      if (order.status === 'canceling') await this.cancellation.execute(claimed, order);
      else await this.fulfil.execute(claimed, order);
    } catch (error) {
      // Whatever went wrong, only the upstream's word ends an order (D22): it is looked at again.
      const known = error instanceof ProviderOutcomeUnknown || error instanceof ProviderUnavailable;
      this.logger[known ? 'warn' : 'error'](
        { event: 'order.attempt_failed', orderId: order.id, attempt: order.upstreamAttempts, err: error },
        'no word of the upstream; the order is looked at again',
      );
      await this.queue.postpone(claimed, retryDelayMs(order.upstreamAttempts, error), (error as Error).name);
    }
  }
}
