import {
  arrayAt,
  countAt,
  instantOrNullAt,
  objectOrNullAt,
  type ResponseObject,
  textOrNullAt,
  usableOrNull,
} from '../http/index.js';
import type { SoldList, SoldPurchase } from '../live-provider.js';
import { readPlacementReference } from '../placement-reference.js';
import type { ZenditApi } from './zendit-api.js';
import { readProgress } from './zendit-purchase.js';

const PAGE_SIZE = 500;
const PART_OF_ORDER = /^(.+)-[1-9]\d{0,3}$/;

/**
 * Reads `GET /esim/purchases` by creation time: each purchase is one eSIM of an order, or one top-up. New purchases
 * would shift the pages, so nothing may be bought while the list is read.
 */
export class ZenditSoldList implements SoldList {
  readonly kinds = ['order', 'topup'] as const;

  constructor(private readonly api: Pick<ZenditApi, 'listPurchases'>) {}

  async readPage(
    since: Date,
    from: number,
    signal: AbortSignal,
  ): Promise<{ readonly sold: readonly SoldPurchase[]; readonly next: number | null }> {
    const answer = await this.api.listPurchases(since, { limit: PAGE_SIZE, offset: from }, signal);
    const list = arrayAt(answer, 'list');
    const next = from + list.length;
    return {
      sold: list.flatMap((value) => toSold(value)),
      // A page may be shorter than requested; an empty one ends the list, whatever its total says.
      next: list.length === 0 || next >= countAt(answer, 'total') ? null : next,
    };
  }
}

/** The order's reference from the purchase id `<order>-<i>`; a top-up's id is its reference. */
export function orderReferenceOf(transactionId: string): string {
  return PART_OF_ORDER.exec(transactionId)?.[1] ?? transactionId;
}

function toSold(value: unknown): readonly SoldPurchase[] {
  const purchase = (typeof value === 'object' && value !== null ? value : {}) as ResponseObject;
  const { transactionId } = purchase;
  if (typeof transactionId !== 'string') return [];
  const reference = orderReferenceOf(transactionId);
  // Do not parse other customers' purchases: a malformed one must not hide ours.
  if (readPlacementReference(reference) === null) return [];
  return [
    {
      reference,
      providerEsimId: transactionId,
      upstreamPackageId: usableOrNull(() => textOrNullAt(purchase, 'offerId')),
      soldAt: usableOrNull(() => instantOrNullAt(purchase, 'createdAt')),
      state: usableOrNull(() => stateOf(purchase)) ?? 'in_progress',
    },
  ];
}

function stateOf(purchase: ResponseObject): SoldPurchase['state'] {
  const progress = readProgress(purchase);
  if (progress === 'failed') return 'failed';
  if (progress === 'running') return 'in_progress';
  const refund = objectOrNullAt(purchase, 'refund');
  return refund !== null && textOrNullAt(refund, 'status') !== null && readProgress(refund) === 'done'
    ? 'taken_back'
    : 'sold';
}
