import type { Ledger } from './ledger.ts';
import { type Progress, type Purchase, toTime, totalCost } from './purchase.ts';

const REFUND_SUFFIX = '-refund';

/** A movement of the wallet: a purchase or its refund. */
interface Transaction {
  readonly transactionId: string;
  readonly productType: 'ESIM' | 'REFUND';
  readonly type: 'DEBIT' | 'CREDIT';
  readonly purchase: Purchase;
  readonly progress: Progress;
}

/** Every movement of the wallet, purchases before their refunds. */
export function transactionsOf(ledger: Ledger): readonly Transaction[] {
  return [...ledger.purchases.values()].flatMap((purchase) => [
    {
      transactionId: purchase.transactionId,
      productType: 'ESIM' as const,
      type: 'DEBIT' as const,
      purchase,
      progress: purchase,
    },
    ...(purchase.refund ? [refundOf(purchase, purchase.refund)] : []),
  ]);
}

/** One movement in the format of `GET /transactions`. */
export function transactionBody({ transactionId, productType, type, purchase, progress }: Transaction) {
  return {
    transactionId,
    productType,
    type,
    amount: totalCost(purchase),
    currency: purchase.offer.cost.currency,
    currencyDivisor: purchase.offer.cost.currencyDivisor,
    status: progress.status,
    ...(progress.error ? { error: progress.error } : {}),
    log: progress.log,
    createdAt: toTime(progress.createdAtMs),
    updatedAt: toTime(progress.updatedAtMs),
  };
}

/** The body of `GET /esim/purchases/{transactionId}/refund`; no document gives it its own product type. */
export function refundBody(purchase: Purchase, refund: Progress): Record<string, unknown> {
  return {
    ...transactionBody(refundOf(purchase, refund)),
    refundedTransactionId: purchase.transactionId,
    productType: 'ESIM',
  };
}

function refundOf(purchase: Purchase, progress: Progress): Transaction {
  return {
    transactionId: `${purchase.transactionId}${REFUND_SUFFIX}`,
    productType: 'REFUND',
    type: 'CREDIT',
    purchase,
    progress,
  };
}
