import type { EsimEntity } from '../esims/index.js';
import { type ProviderCancelRequest, type ProviderOrderRequest, unitCostOf } from '../providers/index.js';
import type { OrderEntity } from './order.entity.js';

/** The order as every provider call about it names it: fixed at acceptance (D19). */
export function toProviderRequest(order: OrderEntity): ProviderOrderRequest {
  return {
    reference: order.providerReference,
    packageId: order.packageId,
    upstreamPackageId: order.upstreamPackageId,
    quantity: order.quantity,
    unitCost: unitCostOf(order),
    acceptedAt: order.createdAt,
  };
}

/** The cancellation of these eSIMs of the order, as every provider call about it names it. */
export function toCancelRequest(order: OrderEntity, esims: readonly EsimEntity[]): ProviderCancelRequest {
  return {
    reference: order.providerReference,
    quantity: order.quantity,
    esims: esims.map(({ providerEsimId, iccid, createdAt }) => ({
      providerEsimId,
      iccid,
      issuedAt: createdAt,
    })),
  };
}
