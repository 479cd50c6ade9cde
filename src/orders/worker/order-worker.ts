import { Processor } from '@nestjs/bullmq';
import { Inject } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG } from '../../config/index.js';
import { InjectNotifier, type Reservation, WorkerNotifier } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { type SpanRequest, Tracer } from '../../infra/tracing/index.js';
import type { ProviderWorkerConfig } from '../../providers/index.js';
import { type ClaimedPurchase, PurchaseWorker } from '../../purchases/index.js';
import type { OrderEntity } from '../order.js';
import { ORDER_JOBS, OrderJobsRepository } from '../order-jobs.repository.js';
import { FulfillOrder } from './fulfill-order.js';
import { SettleCancellation } from './settle-cancellation.js';

/** Sandbox orders of a partner that wait in the worker: a claim of a few at a time would cost more than their work. */
const READY_PER_PARTNER = 256;

/** Provisions and cancels orders. */
@Processor(ORDER_JOBS, { concurrency: 20 })
export class OrderWorker extends PurchaseWorker<OrderEntity> {
  constructor(
    jobs: OrderJobsRepository,
    private readonly fulfillOrder: FulfillOrder,
    private readonly cancellation: SettleCancellation,
    @InjectNotifier(ORDER_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) config: ProviderWorkerConfig,
    @Inject(LOGGER) logger: Logger,
    tracer: Tracer,
  ) {
    super(jobs, { concurrency: 128, readyPerGroup: READY_PER_PARTNER, notifier, config, logger, tracer });
  }

  /** For `PlaceOrder` in the same process. */
  protected override reserveFor(group: string): Reservation<ClaimedPurchase<OrderEntity>> | null {
    return this.runner.reserve(group);
  }

  protected override async fulfill(claimed: ClaimedPurchase<OrderEntity>): Promise<boolean> {
    if (claimed.purchase.status !== 'canceling') return this.fulfillOrder.fulfill(claimed);
    await this.cancellation.settle(claimed);
    return true;
  }

  protected override attributesOf({ quantity }: OrderEntity): SpanRequest['attributes'] {
    return { 'esim.quantity': quantity };
  }
}
