import type { FailureCode, ProviderFailure } from '../esim-provider.js';

/** eSIM Access refused the request. Transport, busy and setup errors are not refusals. */
export class EsimAccessRefusal extends Error {
  constructor(readonly code: string) {
    super(`eSIM Access refused with ${code}`);
    this.name = 'EsimAccessRefusal';
  }
}

export const CODES = {
  server: '000001',
  busy: '900001',
  wrongStatus: '200002',
  insufficientBalance: '200007',
  abnormalStatus: '200009',
  allocating: '200010',
  duplicate: '310402',
  unknownOrder: '310272',
  unknownEsim: '310403',
} as const;

/**
 * Meaning of an error code for the request.
 *
 * Retryable codes: `busy` and `setup` certainly had no effect. `busy` clears on its own; `setup` ends when an operator
 * corrects our address, key or clock. `unfinished` is still in progress. `unsaid` may have had an effect, so look it up
 * by its reference first (D19). A code that is not retryable fails the order or top-up (D22).
 */
export type ErrorMeaning =
  | { readonly retryable: true; readonly because: 'busy' | 'setup' | 'unfinished' | 'unsaid' }
  | { readonly retryable: false; readonly failure: ProviderFailure };

const BUSY: ErrorMeaning = { retryable: true, because: 'busy' };
/** Errors in header, method, body form, signature, address or clock: never the order's fault. */
const SETUP: ErrorMeaning = { retryable: true, because: 'setup' };
const UNFINISHED: ErrorMeaning = { retryable: true, because: 'unfinished' };
const UNSAID: ErrorMeaning = { retryable: true, because: 'unsaid' };

const OUT_OF_STOCK = ends('package_unavailable', 'The package is out of stock.');
const NO_LONGER_SOLD = ends('package_unavailable', 'The package is no longer sold.');
const PRICE_MOVED = ends('price_changed', 'The price of the package has changed.');
const NOT_ACCEPTED = ends('provider_rejected', 'The wholesaler rejected the request.');
const WRONG_STATUS = ends('provider_rejected', 'The wholesaler does not allow this in the current status.');
const UNKNOWN_ESIM = ends('provider_rejected', 'The wholesaler does not know the eSIM.');
const UNKNOWN_THING = ends('provider_rejected', 'The wholesaler does not know the requested object.');
/** Our operator's account is empty, not the partner's wallet. */
const FUNDS_EXHAUSTED = ends('provider_unavailable', 'The wholesaler is temporarily unable to provision.');

/** Every code of the contract, and two codes known only from clients (docs/providers.md). */
const MEANINGS: Readonly<Record<string, ErrorMeaning>> = {
  [CODES.server]: UNSAID,
  '000101': SETUP,
  '000102': SETUP,
  '000103': SETUP,
  '000104': SETUP,
  '000105': NOT_ACCEPTED,
  '000106': NOT_ACCEPTED,
  '000107': NOT_ACCEPTED,
  '101001': SETUP,
  '101002': SETUP,
  '101003': SETUP,
  [CODES.wrongStatus]: WRONG_STATUS,
  '200005': PRICE_MOVED,
  '200006': PRICE_MOVED,
  [CODES.insufficientBalance]: FUNDS_EXHAUSTED,
  '200008': NOT_ACCEPTED,
  [CODES.abnormalStatus]: WRONG_STATUS,
  [CODES.allocating]: UNFINISHED,
  '200011': OUT_OF_STOCK,
  '310201': UNKNOWN_THING,
  '310211': UNKNOWN_THING,
  '310221': UNKNOWN_THING,
  '310231': UNKNOWN_THING,
  '310241': NO_LONGER_SOLD,
  '310243': NO_LONGER_SOLD,
  '310251': UNKNOWN_THING,
  // Occurs in lookups by number only, and may be read lag: it never fails an order.
  [CODES.unknownOrder]: UNSAID,
  // The provider already has this transactionId: look it up by its reference; neither fail it nor send it again.
  [CODES.duplicate]: UNSAID,
  [CODES.unknownEsim]: UNKNOWN_ESIM,
  // Authentication failed.
  '401001': SETUP,
  [CODES.busy]: BUSY,
};

/** A code outside the contract does not say what happened. */
export function meaningOf(code: string): ErrorMeaning {
  if (Object.hasOwn(MEANINGS, code)) return MEANINGS[code]!;
  return code.startsWith('1010') ? SETUP : UNSAID;
}

/** The failure that a code means for an order or top-up; null when the code does not prove that it failed. */
export function failureOf(code: string): ProviderFailure | null {
  const meaning = meaningOf(code);
  return meaning.retryable ? null : meaning.failure;
}

function ends(code: FailureCode, reason: string): ErrorMeaning {
  return { retryable: false, failure: { code, reason } };
}
