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
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../providers/index.js';
import { ORDER_WAKE_UPS } from '../order-queue.js';
import { type ClaimedOrder, OrderQueueRepository } from '../order-queue.repository.js';
import { FulfilOrder } from './fulfil-order.js';
import { FIRST_RETRY_MS, retryDelayMs } from './retry-delay.js';
import { SettleCancellation } from './settle-cancellation.js';

/** The part of a stop's time that calls under way may still take. */
const DRAIN_SHARE = 0.75;
/** Orders under way at once in one worker process, over all partners. */
const TOTAL_SLOTS = 128;
/** An upstream may name any time; an order is not forgotten for longer than this. */
const LONGEST_WAIT_MS = 60_000;

/** Works off the orders that are due, partner by partner; each partner has its own slots (D27, Fairness). */
@Injectable()
export class OrderLanes implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly drainMs: number;
  private drained: Promise<void> = Promise.resolve();
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
    this.drainMs = config.shutdownTimeoutMs * DRAIN_SHARE;
    this.lanes = new LeasedLanes<ClaimedOrder>({
      name: 'orders',
      table: queue,
      wakeUps,
      slotsPerLane: config.provisioning.concurrencyPerPartner,
      totalSlots: TOTAL_SLOTS,
      sweepIntervalMs: config.sweepIntervalMs,
      leaseMs: config.leaseMs,
      logger,
      perform: (claimed) => this.perform(claimed),
    });
  }

  onApplicationBootstrap(): void {
    this.lanes.start();
  }

  /** Begins here, so that every drain of the process has the whole time: Nest waits for hooks one by one. */
  onModuleDestroy(): void {
    this.drained = this.lanes.stop(this.drainMs);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.drained;
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
      await this.queue.postpone(claimed, delayAfter(error, order.upstreamAttempts), (error as Error).name);
    }
  }
}

function delayAfter(error: unknown, attempts: number): number {
  if (!(error instanceof ProviderUnavailable)) return retryDelayMs(attempts);
  return Math.min(LONGEST_WAIT_MS, Math.max(FIRST_RETRY_MS, error.retryAfterMs));
}
