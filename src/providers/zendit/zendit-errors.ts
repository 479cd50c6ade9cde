import type { FailureCode, ProviderFailure } from '../esim-provider.js';
import { type ResponseObject, valueAt } from '../http/index.js';

/** An HTTP refusal of a POST: `{ errorCode, message, fields }`. */
export interface ZenditRefusal {
  readonly status: number;
  readonly errorCode: string | null;
  /** What it complains about: the transaction id, the offer, some other field, or it does not say. */
  readonly about: 'transaction' | 'offer' | 'other' | 'unsaid';
}

/** Never throws: a refusal that says little is a refusal all the same. */
export function readRefusal(status: number, json: unknown): ZenditRefusal {
  const body = typeof json === 'object' && json !== null ? (json as ResponseObject) : {};
  const { message, fields } = body;
  return {
    status,
    errorCode: codeAt(body, 'errorCode'),
    about: aboutOf(`${String(message)} ${JSON.stringify(fields ?? null)}`),
  };
}

function aboutOf(text: string): ZenditRefusal['about'] {
  if (/transaction\s?_?id|duplicate/i.test(text)) return 'transaction';
  // Who names an ICCID beside the offer may mean that the two do not fit, which is no word on the offer.
  if (/iccid/i.test(text)) return 'other';
  return /offer/i.test(text) ? 'offer' : 'unsaid';
}

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

/** An error code, also where it is written as a number; null when there is none. Never throws. */
export function codeAt(object: ResponseObject, key: string): string | null {
  const code = valueAt(object, key);
  if (typeof code === 'number') return String(code);
  return typeof code === 'string' && code !== '' ? code : null;
}
