import {
  type Placement,
  ProviderOutcomeUnknown,
  type ProviderTopupRequest,
  type ProviderTopupState,
} from '../esim-provider.js';
import {
  type AnswerObject,
  countOrNullAt,
  instantOrNullAt,
  textOrNullAt,
  UpstreamAnswerInvalid,
} from '../upstream/index.js';
import type { CallOptions, EsimAccessApi } from './esim-access-api.js';
import { type EsimSearch, isRefusal } from './esim-search.js';
import { statusOf } from './esim-status.js';
import { rejectionOf, toWirePrice } from './order-placement.js';
import type { QueriedEsim } from './queried-esim.js';
import { CODES, EsimAccessRefusal } from './refusal.js';
import { judgeTopup } from './topup-evidence.js';

/**
 * Top-ups. That a repeated `esim/topup` is the same request is not documented, so one that may have left is looked
 * for first, and sent again only when the eSIM certainly does not have it, and only once (`PlacementGuard`).
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
    if (known) return known;
    const state = await this.post(topup, { purpose: 'topup', signal });
    // The refusal of a repetition says nothing of the first one, which may have been applied.
    if (placement === 'again' && state.state === 'rejected') throw new ProviderOutcomeUnknown();
    return state;
  }

  async find(
    topup: ProviderTopupRequest,
    signal: AbortSignal,
    purpose: 'topup' | 'poll' = 'topup',
  ): Promise<ProviderTopupState | null> {
    const esim = await this.look(topup, { purpose, signal });
    if (esim === null) return null;
    switch (judgeTopup(topup, esim, await topup.otherPurchases())) {
      case 'present':
        return {
          state: 'completed',
          totalBytes: esim.unlimited ? null : esim.totalVolume,
          expiresAt: esim.expiresAt,
        };
      case 'absent':
        return null;
      case 'doubtful':
        throw new ProviderOutcomeUnknown(new Error('the eSIM may have the top-up under another name'));
    }
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
      const placement = { operation: 'topup', key: reference, reference } as const;
      const answer = await this.api.place(placement, { ...named, ...amount }, options);
      assertIsFor(topup, answer);
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
 * A success for our eSIM is one, whatever transactionId it names: recorded answers name another one than was sent. One
 * that names neither our eSIM nor our top-up is not trusted with the partner's money: it is looked for.
 * @throws UpstreamAnswerInvalid
 */
function assertIsFor({ esim, reference }: ProviderTopupRequest, answer: AnswerObject): void {
  const iccid = textOrNullAt(answer, 'iccid')?.replace(/F$/i, '') ?? null;
  if (iccid === null ? textOrNullAt(answer, 'transactionId') !== reference : iccid !== esim.iccid)
    throw new UpstreamAnswerInvalid('iccid');
}
