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
 * `GET /esim/purchases` by the time of creation: one purchase is one eSIM of an order, or one top-up. New ones would move
 * the pages, so nothing may be bought while it is read.
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
      // A page may be shorter than was asked for; an empty one ends the list whatever its total says.
      next: list.length === 0 || next >= countAt(answer, 'total') ? null : next,
    };
  }
}

/** Of the purchase of one eSIM of an order, `<order>-<i>`; a top-up is a purchase by itself. */
export function orderReferenceOf(transactionId: string): string {
  return PART_OF_ORDER.exec(transactionId)?.[1] ?? transactionId;
}

function toSold(value: unknown): readonly SoldPurchase[] {
  const purchase = (typeof value === 'object' && value !== null ? value : {}) as ResponseObject;
  const { transactionId } = purchase;
  if (typeof transactionId !== 'string') return [];
  const reference = orderReferenceOf(transactionId);
  // Others' purchases are not read any further: an ill-formed one is no reason not to find ours.
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
