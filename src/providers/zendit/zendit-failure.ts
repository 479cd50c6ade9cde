import type { FailureCode, ProviderFailure } from '../esim-provider.js';

/** The wallet of our operator is empty: nothing that a partner did. */
export const FUNDS_EXHAUSTED = 'INSUFFICIENT_FUNDS';

/** Only the first code is documented; the others are read by their words. */
const CODES: readonly (readonly [RegExp, FailureCode])[] = [
  [/^INSUFFICIENT_FUNDS$/, 'provider_unavailable'],
  [/UNAVAILABLE$|TIMEOUT|^INTERNAL/, 'provider_unavailable'],
  [/STOCK|OFFER|^NOT_FOUND$|DISABLED|INVENTORY/, 'package_unavailable'],
  [/PRICE|COST/, 'price_changed'],
];

const REASONS: Readonly<Partial<Record<FailureCode, string>>> = {
  package_unavailable: 'The package is not available.',
  price_changed: 'The price of the package has changed.',
  provider_unavailable: 'The provider cannot serve the package now.',
};

/** Of a purchase whose price Zendit's own support has given back. */
export const TAKEN_BACK: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The provider took eSIMs of the order back.',
};

/** Our failure for an error code of Zendit; its own texts never leave this folder. */
export function toFailure(errorCode: string | null): ProviderFailure {
  const code = CODES.find(([pattern]) => pattern.test(errorCode ?? ''))?.[1] ?? 'provider_rejected';
  return { code, reason: REASONS[code] ?? 'The provider refused the request.' };
}
