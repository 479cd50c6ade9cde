import { Controller, Param, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { PathId } from '../../infra/http/index.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { ReplaceEsim } from '../replace-esim.js';
import { OrderResponse, toOrderResponse } from './order.response.js';

/** Here and not with the eSIMs, because a replacement is an order. */
@ApiTags('Esims')
@UseGuards(BearerKeyGuard)
@Controller('v1/esims')
export class ReplacementsController {
  constructor(
    private readonly replacing: ReplaceEsim,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @IdempotentPost(':id/replace', {
    status: 202,
    response: OrderResponse,
    summary: 'Replace an unused eSIM',
    description:
      'Returns a new order for one eSIM of the same package, days and price. The old eSIM is canceled first, and its refund pays for the new one. If it cannot be canceled, the new order fails, and the old eSIM stays. If the new eSIM cannot be issued, you keep the refund.',
    location: true,
    refusals: ['not_supported', 'limit_reached'],
  })
  @NeedsScope('orders:write')
  async replaceEsim(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) id: string,
  ): Promise<RenderedResponse> {
    const { requestId, key: idempotencyKey } = key;
    return this.idempotent.execute(key, async (tx) => {
      const order = await this.replacing.replace(tx, caller, id, { requestId, idempotencyKey });
      return { data: toOrderResponse({ order, esims: [] }), location: `/v1/orders/${order.id}` };
    });
  }
}
