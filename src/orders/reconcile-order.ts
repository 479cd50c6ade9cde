import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError, NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectWakeUps, WakeUps } from '../infra/queue/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { EndOrder, type Provisioned } from './end-order.js';
import type { OrderEntity } from './order.entity.js';
import { OrderEndingsRepository } from './order-endings.repository.js';
import { ORDER_WAKE_UPS } from './order-queue.js';
import type { OrderLease } from './order-queue.repository.js';
import { OrdersRepository } from './orders.repository.js';

export const RECONCILE_ACTIONS = ['requery', 'mark_issued', 'mark_failed'] as const;
export type ReconcileAction = (typeof RECONCILE_ACTIONS)[number];

export interface ReconcileCommand {
  readonly orderId: string;
  readonly action: ReconcileAction;
  readonly note: string;
  /** What the upstream named a moment ago; `mark_issued` needs it, `mark_failed` is refused by it. */
  readonly provisioned: Provisioned | null;
}

/** Said to the partner; what support knows is in the note. */
const ENDED_BY_SUPPORT: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The upstream did not confirm the order.',
};

/**
 * Support's word on an order that does not settle by itself (D22). It takes the order over with a higher fence, so
 * that of a worker and support only one can end it.
 */
@Injectable()
export class ReconcileOrder {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly endings: OrderEndingsRepository,
    private readonly end: EndOrder,
    private readonly audit: AuditLog,
    @InjectWakeUps(ORDER_WAKE_UPS) private readonly wakeUps: WakeUps,
  ) {}

  /** @throws NotFound, AppError `conflict` when the order's state, or what the upstream named, does not allow it */
  async execute(tx: Tx, by: ChangeAuthor, command: ReconcileCommand): Promise<OrderEntity> {
    const { orderId, action, note } = command;
    const order = await this.orders.findByIdForUpdate(tx, orderId);
    if (!order) throw new NotFound();
    await this.perform(tx, order, command);
    await this.audit.record(tx, {
      ...by,
      action: 'order.reconciled',
      partnerId: order.partnerId,
      subjectId: orderId,
      details: { action, note },
    });
    return (await this.orders.findByIdForUpdate(tx, orderId))!;
  }

  private async perform(
    tx: Tx,
    order: OrderEntity,
    { action, provisioned }: ReconcileCommand,
  ): Promise<unknown> {
    switch (action) {
      case 'requery':
        return this.requery(tx, order);
      case 'mark_failed':
        if (provisioned)
          throw new AppError('conflict', { detail: 'The upstream has provisioned it: mark it issued.' });
        return this.end.fail(tx, await this.takeOver(tx, order), order, ENDED_BY_SUPPORT);
      case 'mark_issued': {
        const lease = await this.takeOver(tx, order);
        if (!provisioned)
          throw new AppError('conflict', { detail: 'The upstream names no eSIM of this order.' });
        return this.end.issue(tx, lease, order, provisioned);
      }
    }
  }

  private async requery(tx: Tx, order: OrderEntity): Promise<void> {
    if (!(await this.endings.makeDue(tx, order.id))) throw hasEnded();
    tx.afterCommit(() => this.wakeUps.request(order.partnerId));
  }

  private async takeOver(tx: Tx, order: OrderEntity): Promise<OrderLease> {
    const lease = await this.endings.takeOver(tx, order.id);
    if (!lease) throw hasEnded();
    return lease;
  }
}

function hasEnded(): AppError {
  return new AppError('conflict', {
    detail: 'The order has ended, or the upstream is being asked right now.',
  });
}
