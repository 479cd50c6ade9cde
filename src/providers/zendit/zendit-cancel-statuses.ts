import type { ProviderEsimRef, ProviderCancelStatus } from '../esim-provider.js';
import { type ResponseObject, instantOrNullAt, toCancelStatuses, toNoResponseReason } from '../http/index.js';
import { eachValue } from './settle-each.js';
import type { ZenditApi } from './zendit-api.js';
import { toReading } from './zendit-map-usage.js';
import { lookForRefund } from './zendit-refund.js';

const CALLS_AT_ONCE = 6;

/**
 * What has become of eSIMs that were to be taken back: the refund of each, and whether it is used where there is none;
 * `unknown` where that cannot be read.
 * @throws ProviderUnavailable, also when some eSIMs get an answer and others none
 * @throws ProviderOutcomeUnknown when there is no word on any
 */
export async function findCancelStatuses(
  api: Pick<ZenditApi, 'findPurchase' | 'findRefund' | 'findPlans'>,
  esims: readonly ProviderEsimRef[],
  signal: AbortSignal,
): Promise<readonly ProviderCancelStatus[]> {
  const seen = await eachValue(esims, CALLS_AT_ONCE, async (esim) => ({
    providerEsimId: esim.providerEsimId,
    cancelStatus: await cancelStatusOf(api, esim, signal).catch((error: unknown) =>
      toNoResponseReason(error, signal),
    ),
  }));
  return toCancelStatuses(seen);
}

async function cancelStatusOf(
  api: Pick<ZenditApi, 'findPurchase' | 'findRefund' | 'findPlans'>,
  esim: ProviderEsimRef,
  signal: AbortSignal,
): Promise<ProviderCancelStatus['cancelStatus']> {
  const refund = await lookForRefund(api, esim.providerEsimId, signal);
  if (refund === 'done') return 'canceled';
  if (refund === 'running') return 'being_canceled';
  const plans = await api.findPlans(esim.iccid, signal, 'order');
  if (plans === null) return 'unknown';
  return isInUse(esim, plans) ? 'in_use' : 'unused';
}

/** ICCIDs are reused: an installation before the eSIM was issued is somebody else's. */
function isInUse(esim: ProviderEsimRef, plans: ResponseObject): boolean {
  const installedAt = instantOrNullAt(plans, 'firstInstalledAt');
  if (installedAt && installedAt >= esim.issuedAt) return true;
  const reading = toReading(esim, plans, new Date());
  return reading !== null && (reading.activatedAt !== null || (reading.usedBytes ?? 0) > 0);
}
