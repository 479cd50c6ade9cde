import { Controller, Param, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AuditLog, Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import { EsimQueries } from '../../esims/index.js';
import { PathId } from '../../infra/http/index.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { OrderResponse, toOrderResponse } from '../api/order.response.js';
import { CancelOrder } from '../cancel-order.js';
import { ReadOrders } from '../orders.repository.js';
import { ReplaceEsim } from '../replace-esim.js';

/** Cancels an order in the portal, and replaces an eSIM by a new order. */
@ApiTags('Orders')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1')
export class PortalOrderChangesController {
  constructor(
    private readonly replacing: ReplaceEsim,
    private readonly canceling: CancelOrder,
    private readonly orders: ReadOrders,
    private readonly esims: EsimQueries,
    private readonly audit: AuditLog,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @IdempotentPost('orders/:id/cancel', {
    status: 202,
    response: OrderResponse,
    summary: 'Cancel an order and refund it',
    description:
      'Cancels all eSIMs of the order at the wholesaler, then refunds them. An order that is not issued, was topped up, or has a downloaded eSIM gets 409 `order_not_cancelable`. A live order needs a session younger than 15 minutes.',
    refusals: ['order_not_cancelable', 'step_up_required'],
  })
  @NeedsScope('esims:write')
  async cancelOrder(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('ord')) id: string,
  ): Promise<RenderedResponse> {
    const { partnerId, mode } = (await this.orders.getById(caller.anyMode, id)).order;
    // The eSIMs may already be with customers.
    if (mode === 'live') caller.assertYoung();
    return this.idempotent.execute(key, async (tx) => {
      const order = await this.canceling.cancel(tx, { partnerId, mode }, id);
      await this.audit.record(tx, {
        ...by,
        action: 'order.cancel_requested',
        partnerId,
        subjectId: id,
        details: { mode },
      });
      return { data: toOrderResponse(await this.orders.complete(tx, order)) };
    });
  }

  @IdempotentPost('esims/:id/replace', {
    status: 202,
    response: OrderResponse,
    summary: 'Replace an unused eSIM',
    description:
      'Returns a new order for one eSIM of the same package, days and price. The old eSIM is canceled first, and its refund pays for the new one. A live eSIM needs a session younger than 15 minutes.',
    refusals: ['not_supported', 'limit_reached', 'step_up_required'],
  })
  @NeedsScope('esims:write')
  async replaceEsim(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
  ): Promise<RenderedResponse> {
    const { partnerId, mode } = await this.esims.getById(caller.anyMode, id);
    // Replacing cancels what a customer has paid for.
    if (mode === 'live') caller.assertYoung();
    const { requestId, key: idempotencyKey } = key;
    return this.idempotent.execute(key, async (tx) => {
      const order = await this.replacing.replace(tx, { partnerId, mode }, id, { requestId, idempotencyKey });
      await this.audit.record(tx, {
        ...by,
        action: 'esim.replace_requested',
        partnerId,
        subjectId: id,
        details: { mode, order_id: order.id },
      });
      return { data: toOrderResponse({ order, esims: [] }) };
    });
  }
}
