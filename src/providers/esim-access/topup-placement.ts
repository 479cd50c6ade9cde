import {
  type EsimPurchases,
  type EsimTopup,
  type Placement,
  ProviderOutcomeUnknown,
  type ProviderTopupRequest,
  type ProviderTopupState,
} from '../esim-provider.js';
import {
  countOrNullAt,
  instantOrNullAt,
  ProviderResponseInvalid,
  type ResponseObject,
  textOrNullAt,
} from '../http/index.js';
import type { CallOptions, EsimAccessApi } from './esim-access-api.js';
import { type EsimSearch, isRefusal } from './esim-search.js';
import { rejectionOf, statedCost, toWirePrice } from './order-placement.js';
import { type QueriedEsim, type QueriedPackage, statusOf } from './queried-esim.js';
import { CODES, EsimAccessRefusal } from './refusal.js';

/**
 * Places top-ups. No source documents that a repeated `esim/topup` is the same request. A top-up that may have been
 * sent is therefore looked up first. It is sent again only when the eSIM certainly does not have it, and only once
 * (`PlacementGuard`).
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
    // The refusal of a repeated request proves nothing about the first one, which may have been applied.
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
          totalBytes: esim.totalVolume,
          expiresAt: esim.expiresAt,
        };
      case 'absent':
        return null;
      case 'doubtful':
        throw new ProviderOutcomeUnknown(new Error('the eSIM may have the top-up under another name'));
    }
  }

  private async post(topup: ProviderTopupRequest, options: CallOptions): Promise<ProviderTopupState> {
    const { esim, upstreamPackageId, reference, days } = topup;
    const unitCost = statedCost(topup);
    const amount = unitCost === null ? {} : { amount: toWirePrice(unitCost) };
    const named = {
      esimTranNo: esim.providerEsimId,
      packageCode: upstreamPackageId,
      transactionId: reference,
      // The contract has it as text here, and as a number in orders.
      ...(days === null ? {} : { periodNum: String(days) }),
    };
    try {
      const placement = { operation: 'topup', key: reference, reference } as const;
      const answer = await this.api.place(placement, { ...named, ...amount }, options);
      assertIsFor(topup, answer);
      return {
        state: 'completed',
        totalBytes: days === null ? countOrNullAt(answer, 'totalVolume') : null,
        expiresAt: instantOrNullAt(answer, 'expiredTime'),
      };
    } catch (error) {
      if (isRefusal(error, CODES.wrongStatus) || isRefusal(error, CODES.abnormalStatus))
        return this.refusedForStatus(topup, error, options);
      return rejectionOf(error);
    }
  }

  /** The code does not say which status prevents the top-up; the eSIM does. */
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
        failure: { code: 'topup_not_supported', reason: 'The eSIM does not support top-ups.' },
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
 * A success for our eSIM counts, whatever transactionId it names, because recorded responses name a different one than
 * the request. A success that names neither our eSIM nor our top-up does not justify a charge: the top-up is looked up.
 * @throws ProviderResponseInvalid
 */
function assertIsFor({ esim, reference }: ProviderTopupRequest, answer: ResponseObject): void {
  const iccid = textOrNullAt(answer, 'iccid')?.replace(/F$/i, '') ?? null;
  if (iccid === null ? textOrNullAt(answer, 'transactionId') !== reference : iccid !== esim.iccid)
    throw new ProviderResponseInvalid('iccid');
}

/** Evidence of one top-up in an eSIM's packages. */
type TopupEvidence = 'present' | 'absent' | 'doubtful';

/** Maximum difference between the provider's clock and ours. */
const CLOCK_SKEW_MS = 60_000;
const TOPUP_PREFIX = /^TOPUP_/;

/**
 * Compares everything that the eSIM shows with everything that was bought for it (D22). No source shows that a package
 * on an eSIM carries the transactionId of its top-up: it may carry another one, the order's, or none. Therefore:
 * - the top-up is present when its own reference appears, or when one package of its kind has no other explanation;
 * - it is absent only when every package is explained, none is younger than the top-up, and the eSIM has no more volume
 *   than was bought. Unlimited and daily plans never prove this, because they have no total;
 * - every other case is doubtful, and a doubtful top-up is never bought again.
 */
export function judgeTopup(
  topup: ProviderTopupRequest,
  esim: QueriedEsim,
  others: EsimPurchases,
): TopupEvidence {
  if (esim.packages === null) return 'doubtful';
  if (esim.packages.some((bought) => bought.transactionId === topup.reference)) return 'present';
  const rest = unaccountedFor(esim.packages, others);
  if (rest === null) return 'doubtful';
  const [first, ...more] = rest.packages;
  if (first === undefined) return isWithout(topup, esim, rest, others) ? 'absent' : 'doubtful';
  const isOurs =
    more.length === 0 &&
    others.doubtful === 0 &&
    !others.topups.some(({ reference }) => reference === first.transactionId) &&
    isOfKind(first, topup.upstreamPackageId) &&
    !isOlderThan(first, topup.acceptedAt);
  return isOurs ? 'present' : 'doubtful';
}

interface Rest {
  readonly packages: readonly QueriedPackage[];
  readonly base: QueriedPackage;
}

/** The packages without those of the order and of settled top-ups; null when one of these is missing. */
function unaccountedFor(packages: readonly QueriedPackage[], others: EsimPurchases): Rest | null {
  // Sort by age, whatever order the provider uses: earlier purchases are older than this top-up.
  const left = packages.toSorted((one, other) => ageOf(one) - ageOf(other));
  const take = (matches: (bought: QueriedPackage) => boolean): QueriedPackage | null => {
    const index = left.findIndex(matches);
    return index < 0 ? null : left.splice(index, 1)[0]!;
  };
  const unnamed: EsimTopup[] = others.topups.filter(
    ({ reference }) => take((bought) => bought.transactionId === reference) === null,
  );
  const isBase = ({ packageCode }: QueriedPackage): boolean => packageCode === others.basePackageId;
  const base =
    take((bought) => isBase(bought) && bought.transactionId === others.orderReference) ??
    take(isBase) ??
    take(({ packageCode }) => packageCode === null);
  if (base === null) return null;
  for (const { upstreamPackageId } of unnamed) {
    if (take((bought) => isOfKind(bought, upstreamPackageId)) === null) return null;
  }
  return { packages: left, base };
}

function isWithout(
  topup: ProviderTopupRequest,
  esim: QueriedEsim,
  { base }: Rest,
  others: EsimPurchases,
): boolean {
  const isYoung = base.createdAt !== null && base.createdAt > topup.acceptedAt;
  // Without a total, the eSIM does not show whether anything was added.
  if (isYoung || topup.days !== null) return false;
  const baseBytes = Math.min(others.baseBytes ?? Infinity, base.volume ?? Infinity);
  const known = others.topups.reduce((sum, { dataBytes }) => sum + (dataBytes ?? 0), baseBytes);
  return esim.totalVolume !== null && Number.isFinite(known) && esim.totalVolume <= known;
}

/**
 * Matches by the package's own code or by that of the base package it repeats. A package without a code may be
 * anything.
 */
function isOfKind({ packageCode }: QueriedPackage, upstreamPackageId: string): boolean {
  return (
    packageCode === null ||
    packageCode.replace(TOPUP_PREFIX, '') === upstreamPackageId.replace(TOPUP_PREFIX, '')
  );
}

function isOlderThan({ createdAt }: QueriedPackage, acceptedAt: Date): boolean {
  return createdAt !== null && createdAt.getTime() < acceptedAt.getTime() - CLOCK_SKEW_MS;
}

/** A package without a time may be the youngest. */
function ageOf({ createdAt }: QueriedPackage): number {
  return createdAt?.getTime() ?? Number.MAX_SAFE_INTEGER;
}
