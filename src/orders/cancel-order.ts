import { Injectable } from '@nestjs/common';
import { AppError, NotFound } from '../common/errors/index.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { EsimsRepository, isUntouched } from '../esims/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import { InjectNotifier, partnerGroup, WorkerNotifier } from '../infra/jobs/index.js';
import { type OrderEntity, statusesBefore, uncanceled } from './order.js';
import { ORDER_JOBS } from './order-jobs.repository.js';
import { OrdersRepository } from './orders.repository.js';

/** Asks for a cancellation; the worker asks the provider, whose answer decides (D22, Cancel). */
@Injectable()
export class CancelOrder {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    @InjectNotifier(ORDER_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /** @throws NotFound, AppError `order_not_cancelable` unless it is issued, nothing was downloaded and nothing topped up */
  async execute(tx: Tx, scope: TenantScope, orderId: string): Promise<OrderEntity> {
    const order = await this.orders.findForUpdate(tx, scope, orderId);
    if (!order) throw new NotFound();
    if (!statusesBefore('canceling').includes(order.status)) throw new AppError('order_not_cancelable');
    const esims = uncanceled(await this.esims.listByOrderForUpdate(tx, orderId));
    if (esims.length === 0 || !esims.every(isUntouched)) throw new AppError('order_not_cancelable');
    if (await this.orders.hasTopups(tx, orderId)) throw new AppError('order_not_cancelable');
    const now = await databaseNow(tx);
    const changes = {
      status: 'canceling',
      statusBeforeCancel: order.status,
      cancelFailureCode: null,
      cancelFailureReason: null,
      cancelRequestedAt: now,
      upstreamAttempts: 0,
      lastError: null,
      nextAttemptAt: now,
      updatedAt: now,
    } as const;
    await this.orders.update(tx, order.id, changes);
    tx.afterCommit(() => this.notifier.notify(partnerGroup(scope)));
    return Object.assign(order, changes);
  }
}
