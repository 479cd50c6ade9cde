import { type ProviderCancelStatus, ProviderOutcomeUnknown, ProviderUnavailable } from '../esim-provider.js';
import { ProviderResponseInvalid } from './response-reader.js';

/** Why one of several looks gave nothing: it was not answered, or the answer makes no sense. */
export type NoResponseReason = 'silent' | 'unreadable';

const ASK_AGAIN_MS = 5_000;
/** The part of a call's deadline that a look of many calls may take. */
const LOOKUP_SHARE = 0.7;

/** Something of an order is known and something else was not answered: no silence about the order, so ask again. */
export class PartialResponse extends ProviderUnavailable {
  constructor(cause?: unknown) {
    super(ASK_AGAIN_MS, cause);
  }
}

/**
 * A signal that ends a look before its provider's deadline does: what was answered until then must not be lost with
 * what was not. Only for calls that ask.
 */
export function lookupTimeout(signal: AbortSignal, timeoutMs: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(timeoutMs * LOOKUP_SHARE)]);
}

/** For `catch` of one look among several. @throws what says that it was not asked, unless its time was over */
export function toNoResponseReason(error: unknown, signal: AbortSignal): NoResponseReason {
  if (error instanceof ProviderResponseInvalid) return 'unreadable';
  if (error instanceof ProviderOutcomeUnknown || signal.aborted) return 'silent';
  throw error;
}

/** What a look at one eSIM gave. */
export type SeenCancelStatus = Pick<ProviderCancelStatus, 'providerEsimId'> & {
  readonly cancelStatus: ProviderCancelStatus['cancelStatus'] | NoResponseReason;
};

/**
 * @throws PartialResponse when some eSIMs were answered and others not: one of those may be in use
 * @throws ProviderOutcomeUnknown when there is no word on any
 */
export function toCancelStatuses(seen: readonly SeenCancelStatus[]): readonly ProviderCancelStatus[] {
  const count = (wanted: NoResponseReason): number =>
    seen.filter(({ cancelStatus }) => cancelStatus === wanted).length;
  if (seen.length > 0 && count('silent') + count('unreadable') === seen.length)
    throw new ProviderOutcomeUnknown();
  if (count('silent') > 0) throw new PartialResponse();
  return seen.map(({ providerEsimId, cancelStatus }) => ({
    providerEsimId,
    cancelStatus: cancelStatus === 'silent' || cancelStatus === 'unreadable' ? 'unknown' : cancelStatus,
  }));
}
