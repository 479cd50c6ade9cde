import { ProviderOutcomeUnknown, ProviderUnavailable } from '../esim-provider.js';
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
