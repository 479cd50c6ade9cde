import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, WorkerNotifier } from '../infra/jobs/index.js';
import { refusalOf } from './allowed-endings.js';
import type { OrderEntity } from './order.entity.js';
import { OrderEndingsRepository } from './order-endings.repository.js';
import { ORDER_JOBS } from './order-jobs.js';
import { OrdersRepository } from './orders.repository.js';
import { ReconcileCancellation } from './reconcile-cancellation.js';
import { ReconcileProvisioning } from './reconcile-provisioning.js';
import { conflict, notWaiting, type ReconcileAction, summaryOf, type UpstreamWord } from './upstream-word.js';

export interface ReconcileCommand {
  readonly orderId: string;
  readonly action: ReconcileAction;
  readonly note: string;
  /** What the provider said a moment ago; null when there was nothing to ask. */
  readonly word: UpstreamWord | null;
}

/**
 * Support's word on an order that does not settle by itself (D22). It takes the order over with a higher fence, so
 * that of a worker and support only one can end it.
 */
@Injectable()
export class ReconcileOrder {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly endings: OrderEndingsRepository,
    private readonly provisioning: ReconcileProvisioning,
    private readonly cancellation: ReconcileCancellation,
    private readonly audit: AuditLog,
    @InjectNotifier(ORDER_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /** @throws NotFound, AppError `conflict` when the order's state, or what the provider said, does not allow it */
  async execute(tx: Tx, by: ChangeAuthor, command: ReconcileCommand): Promise<OrderEntity> {
    const { orderId, action, note, word } = command;
    const order = await this.orders.findByIdForUpdate(tx, orderId);
    if (!order) throw new NotFound();
    await this.perform(tx, order, command);
    await this.audit.record(tx, {
      ...by,
      action: 'order.reconciled',
      partnerId: order.partnerId,
      subjectId: orderId,
      details: { action, note, ...(word ? { upstream: summaryOf(word) } : {}) },
    });
    return (await this.orders.findByIdForUpdate(tx, orderId))!;
  }

  private async perform(tx: Tx, order: OrderEntity, { action, word }: ReconcileCommand): Promise<void> {
    if (action === 'requery') return this.requery(tx, order);
    if (word === null) throw notWaiting();
    const refusal = refusalOf(action, order, word);
    if (refusal !== null) throw conflict(refusal);
    switch (word.about) {
      case 'processing':
        return this.provisioning.execute(tx, order, action, word);
      case 'canceling':
        return this.cancellation.execute(tx, order, action, word);
    }
  }

  private async requery(tx: Tx, order: OrderEntity): Promise<void> {
    if (!(await this.endings.makeDue(tx, order.id))) throw notWaiting();
    tx.afterCommit(() => this.notifier.notify(order.partnerId));
  }
}
