import type { ProviderCost } from './esim-provider.js';

/** What one cost at the provider at acceptance, as an order or a top-up keeps it; null when nobody charges for it. */
export function unitCostOf(sold: {
  readonly unitCostMicros: number | null;
  readonly unitCostCurrency: string | null;
}): ProviderCost | null {
  const { unitCostMicros: micros, unitCostCurrency: currency } = sold;
  return micros === null || currency === null ? null : { micros, currency };
}
