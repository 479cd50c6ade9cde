import {
  type Placement,
  ProviderOutcomeUnknown,
  type ProviderTopupRequest,
  type ProviderTopupState,
} from '../esim-provider.js';
import { countOrNullAt, instantOrNullAt, textAt, UpstreamAnswerInvalid } from '../upstream/index.js';
import type { CallOptions, EsimAccessApi } from './esim-access-api.js';
import { type EsimSearch, isRefusal } from './esim-search.js';
import { statusOf } from './esim-status.js';
import { rejectionOf, toWirePrice } from './order-placement.js';
import type { QueriedEsim } from './queried-esim.js';
import { CODES, EsimAccessRefusal } from './refusal.js';

/**
 * Top-ups. That a repeated `esim/topup` is the same request is not documented, so one that may have left is looked
 * for first and sent again only when the eSIM certainly does not have it.
 */
export class TopupPlacement {
  constructor(
    private readonly api: EsimAccessApi,
    private readonly search: EsimSearch,
  ) {}

  async place(
    topup: ProviderTopupRequest,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderTopupState> {
    const known = placement === 'again' ? await this.find(topup, signal) : null;
    return known ?? this.post(topup, { purpose: 'topup', signal });
  }

  async find(
    topup: ProviderTopupRequest,
    signal: AbortSignal,
    purpose: 'topup' | 'poll' = 'topup',
  ): Promise<ProviderTopupState | null> {
    const esim = await this.look(topup, { purpose, signal });
    if (esim === null) return null;
    const { packages, totalVolume, expiresAt } = esim;
    if (packages?.some((bought) => bought.transactionId === topup.reference))
      return { state: 'completed', totalBytes: esim.unlimited ? null : totalVolume, expiresAt };
    if (!isCertainlyWithout(topup, esim)) {
      throw new ProviderOutcomeUnknown(new Error('the eSIM may have the top-up, unnamed'));
    }
    return null;
  }

  private async post(topup: ProviderTopupRequest, options: CallOptions): Promise<ProviderTopupState> {
    const { esim, upstreamPackageId, reference, unitCost } = topup;
    const amount = unitCost === null ? {} : { amount: toWirePrice(unitCost) };
    const named = {
      esimTranNo: esim.providerEsimId,
      packageCode: upstreamPackageId,
      transactionId: reference,
    };
    try {
      const answer = await this.api.call('esim/topup', { ...named, ...amount }, options);
      // A success that does not name the top-up is not trusted with the partner's money: it is looked for.
      if (textAt(answer, 'transactionId') !== reference) throw new UpstreamAnswerInvalid('transactionId');
      return {
        state: 'completed',
        totalBytes: countOrNullAt(answer, 'totalVolume'),
        expiresAt: instantOrNullAt(answer, 'expiredTime'),
      };
    } catch (error) {
      if (isRefusal(error, CODES.wrongStatus) || isRefusal(error, CODES.abnormalStatus))
        return this.refusedForStatus(topup, error, options);
      return rejectionOf(error);
    }
  }

  /** The code does not say which status is in the way; the eSIM does. */
  private async refusedForStatus(
    topup: ProviderTopupRequest,
    refusal: EsimAccessRefusal,
    options: CallOptions,
  ): Promise<ProviderTopupState> {
    const esim = await this.look(topup, options);
    if (esim && statusOf(esim) === 'expired')
      return { state: 'rejected', failure: { code: 'esim_expired', reason: 'The eSIM has expired.' } };
    if (esim && !esim.topupSupported)
      return {
        state: 'rejected',
        failure: { code: 'topup_not_supported', reason: 'The eSIM takes no top-ups.' },
      };
    return rejectionOf(refusal);
  }

  private async look(topup: ProviderTopupRequest, options: CallOptions): Promise<QueriedEsim | null> {
    try {
      return await this.search.byTranNo(topup.esim.providerEsimId, options);
    } catch (error) {
      throw error instanceof EsimAccessRefusal ? new ProviderOutcomeUnknown(error) : error;
    }
  }
}

/**
 * Whether nothing on the eSIM can be this top-up: every package of it has a name that is not ours, or is another
 * product, and they make up the whole volume.
 */
function isCertainlyWithout(topup: ProviderTopupRequest, esim: QueriedEsim): boolean {
  const { packages, totalVolume, unlimited } = esim;
  if (packages === null) return false;
  const mayBeOurs = packages.some(
    ({ transactionId, packageCode }) => transactionId === null && packageCode === topup.upstreamPackageId,
  );
  if (mayBeOurs) return false;
  if (unlimited || totalVolume === null || packages.some(({ volume }) => volume === null)) return true;
  return totalVolume <= packages.reduce((sum, { volume }) => sum + (volume ?? 0), 0);
}
