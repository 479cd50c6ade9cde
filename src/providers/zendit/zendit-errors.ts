import type { FailureCode, ProviderFailure } from '../esim-provider.js';
import { type ResponseObject, valueAt } from '../http/index.js';

/** An HTTP refusal of a POST: `{ errorCode, message, fields }`. */
export interface ZenditRefusal {
  readonly status: number;
  readonly errorCode: string | null;
  /** Subject of the complaint: the transaction id, the offer or another field; `unsaid` if it names none. */
  readonly about: 'transaction' | 'offer' | 'other' | 'unsaid';
}

/** Never throws: a refusal with little detail is still a refusal. */
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
  // An ICCID named with the offer may mean that the two do not fit, which says nothing about the offer itself.
  if (/iccid/i.test(text)) return 'other';
  return /offer/i.test(text) ? 'offer' : 'unsaid';
}

/** Our operator's wallet is empty; the partner did nothing wrong. */
export const FUNDS_EXHAUSTED = 'INSUFFICIENT_FUNDS';

/** Only the first code is documented; the others are matched by their words. */
const CODES: readonly (readonly [RegExp, FailureCode])[] = [
  [/^INSUFFICIENT_FUNDS$/, 'provider_unavailable'],
  [/UNAVAILABLE$|TIMEOUT|^INTERNAL/, 'provider_unavailable'],
  [/STOCK|OFFER|^NOT_FOUND$|DISABLED|INVENTORY/, 'package_unavailable'],
  [/PRICE|COST/, 'price_changed'],
];

const REASONS: Readonly<Partial<Record<FailureCode, string>>> = {
  package_unavailable: 'The package is not available.',
  price_changed: 'The price of the package has changed.',
  provider_unavailable: 'The wholesaler is temporarily unable to provide the package.',
};

/** Failure of a purchase that Zendit's own support has refunded. */
export const TAKEN_BACK: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The wholesaler canceled eSIMs of the order.',
};

/** Our failure for a Zendit error code; Zendit's own texts never leave this folder. */
export function toFailure(errorCode: string | null): ProviderFailure {
  const code = CODES.find(([pattern]) => pattern.test(errorCode ?? ''))?.[1] ?? 'provider_rejected';
  return { code, reason: REASONS[code] ?? 'The wholesaler rejected the request.' };
}

/** An error code, which may be a number; null when there is none. Never throws. */
export function codeAt(object: ResponseObject, key: string): string | null {
  const code = valueAt(object, key);
  if (typeof code === 'number') return String(code);
  return typeof code === 'string' && code !== '' ? code : null;
}
