import type { CatalogPackage } from '../catalog/index.js';

/** A profile that an upstream has provisioned. Everything but the ICCID is a secret (D25). */
export interface ProviderProfile {
  readonly providerEsimId: string;
  /** 18 to 20 digits as text; never rejected for its check digit (D23). */
  readonly iccid: string;
  readonly smdpAddress: string;
  readonly matchingId: string;
  readonly confirmationCode: string | null;
  readonly apn: string | null;
}

/** Why an upstream did not give what was asked (api.md, `code` in `failure`). */
export const FAILURE_CODES = [
  'insufficient_balance',
  'package_unavailable',
  'price_changed',
  'esim_expired',
  'topup_not_supported',
  'provider_rejected',
  'provider_unavailable',
] as const;
export type FailureCode = (typeof FAILURE_CODES)[number];

export interface ProviderFailure {
  readonly code: FailureCode;
  readonly reason: string;
}

/** The upstream's word on an order. Only `rejected` makes an order fail (D22). */
export type ProviderOrderState =
  | { readonly state: 'in_progress'; readonly checkAfterMs: number }
  | {
      readonly state: 'provisioned';
      readonly profiles: readonly ProviderProfile[];
      /** Set when fewer profiles than asked were provisioned. */
      readonly shortfall: ProviderFailure | null;
    }
  | { readonly state: 'rejected'; readonly failure: ProviderFailure };

export type ProviderCancelState =
  { readonly state: 'canceled' } | { readonly state: 'refused'; readonly failure: ProviderFailure };

export interface ProviderOrderRequest {
  /** Fixed in the order's row; every call, retry and recovery of the order uses it (D19). */
  readonly reference: string;
  readonly packageId: CatalogPackage['id'];
  readonly quantity: number;
}

/** The call left, and whether it took effect is not known: ask by reference before anything else. */
export class ProviderOutcomeUnknown extends Error {
  constructor(cause?: unknown) {
    super('the upstream did not answer', { cause });
    this.name = 'ProviderOutcomeUnknown';
  }
}

/** An upstream wholesaler. Calls may be repeated with the same reference and must not provision twice. */
export interface EsimProvider {
  readonly name: string;
  /** How long one call may take before its outcome counts as unknown. */
  readonly timeoutMs: number;
  /** @throws ProviderOutcomeUnknown */
  placeOrder(request: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderState>;
  /** Null when the upstream does not know the reference. @throws ProviderOutcomeUnknown */
  findOrder(reference: string, signal: AbortSignal): Promise<ProviderOrderState | null>;
  /** @throws ProviderOutcomeUnknown */
  cancelOrder(reference: string, signal: AbortSignal): Promise<ProviderCancelState>;
}

/** Runs one upstream call under the provider's deadline. @throws ProviderOutcomeUnknown when it passes. */
export async function callProvider<T>(
  provider: EsimProvider,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new ProviderOutcomeUnknown());
      controller.abort();
    }, provider.timeoutMs);
  });
  try {
    return await Promise.race([call(controller.signal), deadline]);
  } finally {
    clearTimeout(timer);
  }
}
