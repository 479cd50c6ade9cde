import type { EsimEntity } from '../esims/index.js';
import { type EsimPurchasesRepository, type ProviderTopupRequest, unitCostOf } from '../providers/index.js';
import type { TopupEntity } from './topup.entity.js';

/** The top-up as every provider call about it names it: fixed at acceptance (D19). */
export function toProviderRequest(
  topup: TopupEntity,
  esim: EsimEntity,
  purchases: EsimPurchasesRepository,
): ProviderTopupRequest {
  return {
    reference: topup.providerReference,
    esim: { providerEsimId: esim.providerEsimId, iccid: esim.iccid, issuedAt: esim.createdAt },
    packageId: topup.packageId,
    upstreamPackageId: topup.upstreamPackageId,
    unitCost: unitCostOf(topup),
    acceptedAt: topup.createdAt,
    otherPurchases: () => purchases.getBesides(topup.providerReference),
  };
}
