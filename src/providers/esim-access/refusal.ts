import type { FailureCode, ProviderFailure } from '../esim-provider.js';

/** eSIM Access answered that it did not do what was asked. Transport, busy and setup errors are no refusals. */
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
  unknownOrder: '310272',
  unknownEsim: '310403',
} as const;

/** Header, method, body form, signature, address, clock: nothing that an order could be blamed for. */
export function isMisconfiguration(code: string): boolean {
  return /^(1010\d\d|00010[1-4])$/.test(code);
}

const FAILURES: Readonly<Record<string, readonly [FailureCode, string]>> = {
  // Our operator's account is empty: no fault of the partner's wallet.
  [CODES.insufficientBalance]: ['provider_unavailable', 'The upstream cannot provision now.'],
  '200011': ['package_unavailable', 'The package is out of stock.'],
  '310241': ['package_unavailable', 'The package is no longer sold.'],
  '310243': ['package_unavailable', 'The package is no longer sold.'],
  '200005': ['price_changed', 'The upstream price has changed.'],
  '200006': ['price_changed', 'The upstream price has changed.'],
  '000105': ['provider_rejected', 'The upstream did not accept the request.'],
  '000106': ['provider_rejected', 'The upstream did not accept the request.'],
  '000107': ['provider_rejected', 'The upstream did not accept the request.'],
  '200008': ['provider_rejected', 'The upstream did not accept the request.'],
  [CODES.wrongStatus]: ['provider_rejected', 'The upstream does not allow this in the present status.'],
  [CODES.abnormalStatus]: ['provider_rejected', 'The upstream does not allow this in the present status.'],
  [CODES.unknownEsim]: ['provider_rejected', 'The upstream does not know the eSIM.'],
  '310201': ['provider_rejected', 'The upstream does not know what was asked for.'],
  '310211': ['provider_rejected', 'The upstream does not know what was asked for.'],
  '310221': ['provider_rejected', 'The upstream does not know what was asked for.'],
  '310231': ['provider_rejected', 'The upstream does not know what was asked for.'],
  '310251': ['provider_rejected', 'The upstream does not know what was asked for.'],
};

/** What a code means for an order or top-up; null for a code that does not say for certain that it was refused. */
export function failureOf(code: string): ProviderFailure | null {
  const found = Object.hasOwn(FAILURES, code) ? FAILURES[code] : undefined;
  return found ? { code: found[0], reason: found[1] } : null;
}
