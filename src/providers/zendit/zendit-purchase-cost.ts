import type { ProviderCost } from '../esim-provider.js';
import { type ResponseObject, countAt, countOrNullAt, textAt } from '../http/index.js';
import { toProviderCost } from './zendit-money.js';

/**
 * What a purchase cost; null where it cannot be read, for it is only compared and logged, and must not hold up a paid
 * eSIM. Zendit documents nowhere whether `cost` has `costFee` in it, so the higher of `cost` and `costBase` +
 * `costFee` counts: a sale may look dearer than it was, never cheaper.
 */
export function readPurchaseCost(answer: ResponseObject): ProviderCost | null {
  try {
    const amount = Math.max(countAt(answer, 'cost'), baseAndFee(answer));
    return toProviderCost(amount, countAt(answer, 'costCurrencyDivisor'), textAt(answer, 'costCurrency'));
  } catch {
    return null;
  }
}

function baseAndFee(answer: ResponseObject): number {
  const [base, fee] = ['costBase', 'costFee'].map((field) => amountOrNull(answer, field));
  return (base ?? 0) + (fee ?? 0);
}

/** A part that cannot be read takes nothing from what the whole says. */
function amountOrNull(answer: ResponseObject, field: string): number | null {
  try {
    return countOrNullAt(answer, field);
  } catch {
    return null;
  }
}
