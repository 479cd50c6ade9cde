import { setTimeout as delay } from 'node:timers/promises';
import {
  type ProviderCancelRequest,
  type ProviderCancelState,
  type ProviderCancelStatus,
  type ProviderEsimRef,
  ProviderOutcomeUnknown,
} from '../esim-provider.js';
import { instantOrNullAt, type ResponseObject, toCancelStatuses, toNoResponseReason } from '../http/index.js';
import { eachValue } from './settle-each.js';
import type { ZenditApi } from './zendit-api.js';
import { toReading } from './zendit-map-usage.js';
import type { ZenditProgress } from './zendit-purchase.js';

const CALLS_AT_ONCE = 6;
const LOOKS = 5;
const LOOK_PAUSE_MS = 500;
const REFUSED = {
  code: 'provider_rejected',
  reason: 'The wholesaler does not cancel this eSIM.',
} as const;

/**
 * Refunds an order's purchases. It looks for a refund before it posts one, so a repeated call finds the first refund.
 * It never posts two in one call, because a repeated POST is undocumented.
 */
export class ZenditCanceling {
  constructor(private readonly api: ZenditApi) {}

  /** @throws ProviderOutcomeUnknown while a refund is in progress (look again), ProviderUnavailable */
  async cancel(request: ProviderCancelRequest, signal: AbortSignal): Promise<ProviderCancelState> {
    const ids = request.esims.map(({ providerEsimId }) => providerEsimId);
    const ends = await eachValue(ids, CALLS_AT_ONCE, (id) => this.refund(id, request.reference, signal));
    const canceledEsimIds = ids.filter((_, i) => ends[i] === 'done');
    if (canceledEsimIds.length === ids.length) return { state: 'canceled' };
    if (canceledEsimIds.length === 0) return { state: 'refused', failure: REFUSED };
    return { state: 'partly_canceled', canceledEsimIds, failure: REFUSED };
  }

  private async refund(
    transactionId: string,
    reference: string,
    signal: AbortSignal,
  ): Promise<ZenditProgress> {
    let progress =
      (await this.look(transactionId, signal)) ?? (await this.post(transactionId, reference, signal));
    for (let looks = 0; progress === 'running' && looks < LOOKS; looks++) {
      if (looks > 0) await pause(signal);
      progress = (await this.look(transactionId, signal)) ?? progress;
    }
    if (progress === 'running') throw new ProviderOutcomeUnknown();
    return progress;
  }

  private async post(transactionId: string, reference: string, signal: AbortSignal): Promise<ZenditProgress> {
    const answer = await this.api.postRefund(transactionId, reference, signal);
    if (answer.accepted) return answer.progress;
    // Zendit may have refused a refund that already exists, or one that is forbidden.
    return (await this.look(transactionId, signal)) ?? 'failed';
  }

  private look(transactionId: string, signal: AbortSignal): Promise<ZenditProgress | null> {
    return lookForRefund(this.api, transactionId, signal);
  }
}

async function pause(signal: AbortSignal): Promise<void> {
  try {
    await delay(LOOK_PAUSE_MS, undefined, { signal });
  } catch (error) {
    throw new ProviderOutcomeUnknown(error);
  }
}

/**
 * States of eSIMs that were to be canceled: the refund of each, or its use if there is no refund; `unknown` when
 * unreadable.
 * @throws ProviderUnavailable, even when only some lookups get a response
 * @throws ProviderOutcomeUnknown when none gets a readable response
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

/** ICCIDs are reused: an installation before the eSIM was issued belongs to someone else. */
function isInUse(esim: ProviderEsimRef, plans: ResponseObject): boolean {
  const installedAt = instantOrNullAt(plans, 'firstInstalledAt');
  if (installedAt && installedAt >= esim.issuedAt) return true;
  const reading = toReading(esim, plans, new Date());
  return reading !== null && (reading.activatedAt !== null || (reading.usedBytes ?? 0) > 0);
}

/**
 * Progress of a purchase's refund; null when there is none. The purchase names its refund. If that shows no final
 * state, the refund endpoint is queried too, because a refund is posted when this lookup finds none.
 * @throws ProviderUnavailable, ProviderOutcomeUnknown
 */
async function lookForRefund(
  api: Pick<ZenditApi, 'findPurchase' | 'findRefund'>,
  transactionId: string,
  signal: AbortSignal,
): Promise<ZenditProgress | null> {
  const purchase = await api.findPurchase(transactionId, 'order', signal);
  const own = purchase?.refund() ?? null;
  if (own === 'done' || own === 'failed') return own;
  return (await api.findRefund(transactionId, signal)) ?? own;
}
