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
import { ReplaceEsim } from '../replace-esim.js';

/** Replaces an eSIM in the portal; the replacement is an order. */
@ApiTags('Esims')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/esims')
export class PortalReplacementsController {
  constructor(
    private readonly replacing: ReplaceEsim,
    private readonly esims: EsimQueries,
    private readonly audit: AuditLog,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @IdempotentPost(':id/replace', {
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
