import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError, NotFound, ValidationFailed } from '../common/errors/index.js';
import type { Money } from '../common/money.js';
import { EsimsRepository } from '../esims/index.js';
import { EventRecorder } from '../events/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import { type OrderEntity, OrdersRepository, refundableOf } from '../orders/index.js';
import { returnedSpending } from '../purchases/index.js';
import { Wallet } from '../wallet/index.js';
import type { RefundRequestEntity } from './refund-request.entity.js';
import { RefundRequestsRepository } from './refund-requests.repository.js';

export interface RefundDecision {
  readonly id: string;
  /** The partner sees it. */
  readonly note: string;
}

export interface Approval extends RefundDecision {
  /** Null: everything that is left to refund. */
  readonly amount: Money | null;
}

/** The portal team's decision on a refund request. Money, order and event are one transaction with it. */
@Injectable()
export class DecideRefund {
  constructor(
    private readonly requests: RefundRequestsRepository,
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    private readonly wallet: Wallet,
    private readonly audit: AuditLog,
    private readonly events: EventRecorder,
  ) {}

  /**
   * Refunds the eSIM's share of its order. Locks the order before the request and the wallet (D40), as a cancellation
   * does (B15). All refunds of an eSIM are therefore decided one after another, and never exceed its price.
   * @throws NotFound, ValidationFailed for another currency, AppError `conflict` unless it is pending, while the eSIM is
   * being replaced, and when the amount exceeds what is left
   */
  async approve(tx: Tx, by: ChangeAuthor, { id, amount, note }: Approval): Promise<RefundRequestEntity> {
    const { orderId } = await this.requests.getOfAny(tx.manager, id);
    const order = await this.orders.findByIdForUpdate(tx, orderId);
    if (!order) throw new NotFound();
    const request = await this.requests.lockPending(tx, { id });
    if (amount !== null && amount.currency !== order.currency)
      throw new ValidationFailed([
        {
          pointer: '/amount/currency',
          code: 'currency',
          message: `must be ${order.currency}, the currency of the order`,
        },
      ]);
    const left = await this.refundable(tx, order, request);
    const refund = amount?.amount ?? left;
    if (refund > left || refund === 0) throw tooMuch({ amount: left, currency: order.currency });
    const decidedAt = await databaseNow(tx);
    const refundedAmount = order.refundedAmount + refund;
    await this.orders.update(tx, order.id, { refundedAmount, updatedAt: decidedAt });
    const approved = { status: 'approved', amount: refund, note, decidedAt } as const;
    const ended = await this.end(tx, by, request, approved);
    // Last, because acceptance waits for the wallet's row.
    await this.wallet.refund(tx, {
      mode: order.mode,
      subject: { orderId: order.id },
      amount: refund,
      returned: returnedSpending(order, refund),
    });
    return ended;
  }

  /** @throws NotFound, AppError `conflict` unless it is pending */
  async reject(tx: Tx, by: ChangeAuthor, { id, note }: RefundDecision): Promise<RefundRequestEntity> {
    const request = await this.requests.lockPending(tx, { id });
    return this.end(tx, by, request, { status: 'rejected', note, decidedAt: await databaseNow(tx) });
  }

  private async refundable(
    tx: Tx,
    order: OrderEntity,
    { esimId, partnerId, mode }: RefundRequestEntity,
  ): Promise<number> {
    const esim = await this.esims.find({ partnerId, mode }, esimId, tx.manager);
    if (!esim) throw new NotFound();
    // The refund of a replaced eSIM pays for the new one.
    if (esim.pendingAction === 'replace')
      throw new AppError('conflict', {
        detail: 'The eSIM is being replaced. Fetch the request again once its order is not `canceling`.',
      });
    return refundableOf(order, esim, await this.orders.listRefunds(tx.manager, [order.id]));
  }

  private async end(
    tx: Tx,
    by: ChangeAuthor,
    request: RefundRequestEntity,
    changes: {
      readonly status: 'approved' | 'rejected';
      readonly amount?: number;
      readonly note: string;
      readonly decidedAt: Date;
    },
  ): Promise<RefundRequestEntity> {
    const ended = await this.requests.end(tx, request, changes);
    const { id, partnerId, mode, esimId, orderId, amount, currency } = ended;
    const { status, note, decidedAt: happenedAt } = changes;
    await this.audit.record(tx, {
      ...by,
      action: `refund_request.${status}`,
      partnerId,
      subjectId: id,
      details: { esim_id: esimId, note, ...(amount !== null && { amount, currency }) },
    });
    const data = {
      refund_request_id: id,
      esim_id: esimId,
      order_id: orderId,
      status,
      amount: amount === null ? null : { amount, currency },
    };
    await this.events.record(tx, [{ type: 'refund.settled', partnerId, mode, happenedAt, data }]);
    return ended;
  }
}

function tooMuch(left: Money): AppError {
  return new AppError('conflict', {
    detail:
      left.amount === 0
        ? 'Nothing is left to refund for this eSIM. Reject the request.'
        : `Only ${left.amount} ${left.currency} in minor units are left to refund for this eSIM. Approve at most this amount.`,
  });
}
