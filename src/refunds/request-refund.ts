import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError, NotFound } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import type { ReadScope } from '../common/tenant-scope.js';
import { EsimsRepository } from '../esims/index.js';
import { modeIn, type Tx } from '../infra/database/index.js';
import { OrdersRepository, refundableOf } from '../orders/index.js';
import type { RefundReason, RefundRequestEntity } from './refund-request.entity.js';
import { RefundRequestsRepository } from './refund-requests.repository.js';

/** Limits the rows of an eSIM, because requesting and canceling costs nothing. */
const MAX_PER_ESIM = 10;

export interface RequestRefundCommand {
  readonly esimId: string;
  readonly reason: RefundReason;
  readonly details: string | null;
}

/** A partner's side of a refund: requests it, and may cancel the request until the decision. */
@Injectable()
export class RequestRefund {
  constructor(
    private readonly requests: RefundRequestsRepository,
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    private readonly audit: AuditLog,
  ) {}

  /**
   * @param by the person in the portal; null for a call with an API key, which the call log records
   * @throws NotFound, AppError `conflict` when nothing is left to refund or a request is pending, `limit_reached`
   */
  async request(
    tx: Tx,
    scope: ReadScope,
    { esimId, reason, details }: RequestRefundCommand,
    by: ChangeAuthor | null = null,
  ): Promise<RefundRequestEntity> {
    const esim = await this.esims.find(scope, esimId, tx.manager);
    if (!esim) throw new NotFound();
    const { partnerId, mode, orderId } = esim;
    // The order's row keeps a purge from deleting the eSIM in the meantime.
    const order = await this.orders.findForUpdate(tx, { partnerId, mode }, orderId);
    if (!order) throw new NotFound();
    const refunds = await this.orders.listRefunds(tx.manager, [orderId]);
    if (refundableOf(order, esim, refunds) === 0)
      throw new AppError('conflict', {
        detail: 'Nothing is left to refund for this eSIM. Fetch its order to see what was refunded.',
      });
    if ((await this.requests.countOfEsim(tx, esimId)) >= MAX_PER_ESIM)
      throw new AppError('limit_reached', {
        detail: `An eSIM can have at most ${MAX_PER_ESIM} refund requests. Contact us about this eSIM.`,
      });
    const { currency } = order;
    const id = newId('rfr');
    const fields = { id, partnerId, mode, esimId, orderId, reason, details, currency };
    const request = await this.requests.insert(tx, fields);
    if (by) await this.record(tx, by, 'created', request);
    return request;
  }

  /** @throws NotFound, AppError `conflict` unless it is pending */
  async cancel(
    tx: Tx,
    { partnerId, mode }: ReadScope,
    id: string,
    by: ChangeAuthor | null = null,
  ): Promise<RefundRequestEntity> {
    const request = await this.requests.lockPending(tx, { id, partnerId, mode: modeIn(mode) });
    if (by) await this.record(tx, by, 'canceled', request);
    return this.requests.end(tx, request, { status: 'canceled' });
  }

  private record(
    tx: Tx,
    by: ChangeAuthor,
    change: 'created' | 'canceled',
    { id, partnerId, esimId, reason }: RefundRequestEntity,
  ): Promise<void> {
    return this.audit.record(tx, {
      ...by,
      action: `refund_request.${change}`,
      partnerId,
      subjectId: id,
      details: { esim_id: esimId, reason },
    });
  }
}
