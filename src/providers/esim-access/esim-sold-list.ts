import { asObject, instantOrNullAt, type ResponseObject, textOrNullAt, usableOrNull } from '../http/index.js';
import type { SoldList, SoldPurchase } from '../live-provider.js';
import { readPlacementReference } from '../placement-reference.js';
import { type CallOptions, retryShortWaits } from './esim-access-api.js';
import { type EsimSearch, withinClockSkew } from './esim-search.js';
import { isAllocating, statusOf, toQueriedEsim } from './queried-esim.js';

/**
 * Runs `esim/query` by creation time. Each eSIM names its order. No source proves which reference a top-up carries
 * there, so top-ups cannot be listed.
 */
export class EsimSoldList implements SoldList {
  readonly kinds = ['order'] as const;

  constructor(private readonly search: EsimSearch) {}

  async readPage(
    since: Date,
    from: number,
    signal: AbortSignal,
  ): Promise<{ readonly sold: readonly SoldPurchase[]; readonly next: number | null }> {
    const options: CallOptions = { purpose: 'poll', signal };
    const window = withinClockSkew(since, new Date());
    const { esims, pages } = await retryShortWaits(
      () => this.search.page(window, from + 1, options),
      options,
    );
    return { sold: esims.flatMap((value) => toSold(value)), next: from + 1 < pages ? from + 1 : null };
  }
}

function toSold(value: unknown): readonly SoldPurchase[] {
  const { transactionId: reference, esimTranNo } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof reference !== 'string' || typeof esimTranNo !== 'string') return [];
  // Do not parse other customers' eSIMs: a malformed one must not hide ours.
  if (readPlacementReference(reference) === null) return [];
  const base = usableOrNull(() => basePackageOf(value));
  return [
    {
      reference,
      providerEsimId: esimTranNo,
      upstreamPackageId: base && usableOrNull(() => textOrNullAt(base, 'packageCode')),
      soldAt: base && usableOrNull(() => instantOrNullAt(base, 'createTime')),
      state: usableOrNull(() => stateOf(value)) ?? 'in_progress',
    },
  ];
}

/** The first package is the order's; the others are top-ups. */
function basePackageOf(value: unknown): ResponseObject | null {
  const { packageList } = value as { readonly packageList?: unknown };
  return Array.isArray(packageList) && packageList.length > 0
    ? asObject(packageList[0], 'packageList')
    : null;
}

function stateOf(value: unknown): SoldPurchase['state'] {
  const esim = toQueriedEsim(value);
  if (statusOf(esim) === 'canceled') return 'taken_back';
  return isAllocating(esim) ? 'in_progress' : 'sold';
}
