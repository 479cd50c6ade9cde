import { Injectable } from '@nestjs/common';
import { NotFound } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { EsimsRepository, requireAction } from '../esims/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import { currentTraceparent } from '../infra/tracing/index.js';
import { SandboxQuota } from '../partners/index.js';
import { placementReference, ProviderRegistry } from '../providers/index.js';
import { CancelOrder } from './cancel-order.js';
import type { OrderEntity } from './order.js';
import { OrdersRepository } from './orders.repository.js';

/**
 * Replaces an unused eSIM by a new one of the same terms and price (D70). The order's worker cancels the old one. Its
 * refund then pays for the new order, which waits without a due time until then (`StartReplacement`).
 */
@Injectable()
export class ReplaceEsim {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    private readonly canceling: CancelOrder,
    private readonly providers: ProviderRegistry,
    private readonly sandboxQuota: SandboxQuota,
  ) {}

  /**
   * @throws NotFound, AppError `not_supported` unless the eSIM's `actions` have `replace`, AppError `limit_reached`,
   * `service_unavailable`
   */
  async replace(
    tx: Tx,
    scope: TenantScope,
    esimId: string,
    call: { readonly requestId: string; readonly idempotencyKey: string | null },
  ): Promise<OrderEntity> {
    const found = await this.esims.find(scope, esimId, tx.manager);
    const old = found && (await this.orders.findForUpdate(tx, scope, found.orderId));
    if (!old) throw new NotFound();
    const esims = await this.esims.listByOrderForUpdate(tx, old.id);
    const esim = esims.find(({ id }) => id === esimId);
    const situation = (await this.esims.listSituations(tx.manager, [old.id])).get(old.id);
    if (!esim || !situation) throw new NotFound();
    requireAction(esim, situation, 'replace');
    this.sandboxQuota.take(scope, 1, old.metadata);
    const order = await this.insert(tx, old, esimId, call);
    const replaced = { pendingAction: 'replace', replacedBy: order.id, actionFailure: null } as const;
    await this.esims.update(tx, esimId, { ...replaced, updatedAt: await databaseNow(tx) });
    await this.canceling.begin(tx, scope, old);
    return order;
  }

  private async insert(
    tx: Tx,
    old: OrderEntity,
    esimId: string,
    { requestId, idempotencyKey }: { readonly requestId: string; readonly idempotencyKey: string | null },
  ): Promise<OrderEntity> {
    const { partnerId, mode } = old;
    const bought = [old.packageId, 'replaces', esimId];
    const order = await this.orders.insert(tx, {
      ...old,
      id: newId('ord'),
      quantity: 1,
      replaces: esimId,
      reference: null,
      provider: this.providers.nameForNew(mode, old.provider),
      providerReference: placementReference('order', { partnerId, mode, idempotencyKey, bought }),
      acceptedRequestId: requestId,
      limitedKeyId: null,
      traceparent: currentTraceparent(),
    });
    await this.orders.update(tx, order.id, { nextAttemptAt: null });
    return Object.assign(order, { nextAttemptAt: null });
  }
}
