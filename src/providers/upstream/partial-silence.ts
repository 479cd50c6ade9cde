import { ProviderOutcomeUnknown, ProviderUnavailable } from '../esim-provider.js';
import { UpstreamAnswerInvalid } from './answer-reader.js';

/** Why one of several looks gave nothing: it was not answered, or the answer makes no sense. */
export type WithoutWord = 'silent' | 'unreadable';

const ASK_AGAIN_MS = 5_000;
/** The part of a call's deadline that a look of many calls may take. */
const LOOK_SHARE = 0.7;

/** Something of an order is known and something else was not answered: no silence about the order, so ask again. */
export class PartlySilent extends ProviderUnavailable {
  constructor(cause?: unknown) {
    super(ASK_AGAIN_MS, cause);
  }
}

/**
 * A signal that ends a look before its provider's deadline does: what was answered until then must not be lost with
 * what was not. Only for calls that ask.
 */
export function withinLook(signal: AbortSignal, timeoutMs: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(timeoutMs * LOOK_SHARE)]);
}

/** For `catch` of one look among several. @throws what says that it was not asked, unless its time was over */
export function withoutWord(error: unknown, signal: AbortSignal): WithoutWord {
  if (error instanceof UpstreamAnswerInvalid) return 'unreadable';
  if (error instanceof ProviderOutcomeUnknown || signal.aborted) return 'silent';
  throw error;
}
