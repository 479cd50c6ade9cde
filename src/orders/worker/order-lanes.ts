import {
  Inject,
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { LOGGER } from '../../infra/logging/index.js';
import { InjectWakeUps, LaneRunner, type LaneWork, WakeUps } from '../../infra/queue/index.js';
import { Sweeper } from '../../infra/sweeping/index.js';
import { ProviderOutcomeUnknown } from '../../providers/index.js';
import { ORDER_WAKE_UPS } from '../order-queue.js';
import { type OrderLease, OrderQueueRepository } from '../order-queue.repository.js';
import { FulfilOrder } from './fulfil-order.js';
import { SettleCancellation } from './settle-cancellation.js';

/** Orders under way at once in one worker process, over all partners. */
const TOTAL_SLOTS = 128;
const LANES_PER_SWEEP = 500;
/** What is due and was not claimed is locked by somebody for a moment: no hot loop. */
const SHORTEST_WAIT_MS = 25;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 30_000;

/** Works off the orders that are due, partner by partner; each partner has its own slots (D27, Fairness). */
@Injectable()
export class OrderLanes implements LaneWork<OrderLease>, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly runner: LaneRunner<OrderLease>;
  private readonly sweeper: Sweeper;
  private readonly heartbeat: Sweeper;
  private readonly held = new Set<OrderLease>();

  constructor(
    private readonly queue: OrderQueueRepository,
    private readonly fulfil: FulfilOrder,
    private readonly cancellation: SettleCancellation,
    @InjectWakeUps(ORDER_WAKE_UPS) wakeUps: WakeUps,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning' | 'sweepIntervalMs' | 'leaseMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.runner = new LaneRunner(this, {
      slotsPerLane: config.provisioning.concurrencyPerPartner,
      totalSlots: TOTAL_SLOTS,
      logger,
      wakeAt: (lane, at) =>
        wakeUps.requestAt(lane, new Date(Math.max(at.getTime(), Date.now() + SHORTEST_WAIT_MS))),
    });
    this.sweeper = new Sweeper({
      name: 'orders.due',
      intervalMs: config.sweepIntervalMs,
      logger,
      run: async () => (await this.queue.listLanesDue(LANES_PER_SWEEP)).forEach((lane) => this.wake(lane)),
    });
    this.heartbeat = new Sweeper({
      name: 'orders.leases',
      intervalMs: config.leaseMs / 3,
      logger,
      run: async () => (this.held.size > 0 ? this.queue.renew([...this.held]) : undefined),
    });
  }

  onApplicationBootstrap(): void {
    this.sweeper.start();
    this.heartbeat.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.sweeper.stop();
    await this.runner.stop();
    await this.heartbeat.stop();
  }

  wake(lane: string): void {
    this.runner.wake(lane);
  }

  async claim(lane: string, slots: number): Promise<readonly OrderLease[]> {
    const leases = await this.queue.claim(lane, slots);
    for (const lease of leases) this.held.add(lease);
    return leases;
  }

  async nextDueAt(lane: string): Promise<Date | null> {
    return this.queue.nextDueAt(lane);
  }

  async perform(lease: OrderLease): Promise<void> {
    try {
      await this.work(lease);
    } finally {
      this.held.delete(lease);
    }
  }

  private async work(lease: OrderLease): Promise<void> {
    const order = await this.queue.getById(lease.orderId);
    try {
      if (order.status === 'canceling') await this.cancellation.execute(lease, order);
      else await this.fulfil.execute(lease, order);
    } catch (error) {
      // Whatever went wrong, only the upstream's word ends an order (D22): it is looked at again.
      const known = error instanceof ProviderOutcomeUnknown;
      this.logger[known ? 'warn' : 'error'](
        { event: 'order.attempt_failed', orderId: order.id, attempt: order.upstreamAttempts, err: error },
        'upstream outcome unknown; the order is looked at again',
      );
      await this.queue.postpone(lease, retryDelayMs(order.upstreamAttempts));
    }
  }
}

function retryDelayMs(attempts: number): number {
  return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 10));
}
