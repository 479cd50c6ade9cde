import { type ProviderEsimStanding, ProviderOutcomeUnknown, ProviderUnavailable } from '../esim-provider.js';
import { UpstreamAnswerInvalid } from './answer-reader.js';

/** What a look at one eSIM gave: `silent` when it was not answered, `unreadable` when the answer makes no sense. */
export type SeenStanding = Pick<ProviderEsimStanding, 'providerEsimId'> & {
  readonly standing: ProviderEsimStanding['standing'] | WithoutWord;
};

type WithoutWord = 'silent' | 'unreadable';

const ASK_AGAIN_MS = 5_000;
/** The part of a call's deadline that a look of many calls may take. */
const LOOK_SHARE = 0.7;

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

/**
 * @throws ProviderUnavailable when some eSIMs were answered and others not: one of those may be in use
 * @throws ProviderOutcomeUnknown when there is no word on any
 */
export function toStandings(seen: readonly SeenStanding[]): readonly ProviderEsimStanding[] {
  const count = (wanted: WithoutWord): number => seen.filter(({ standing }) => standing === wanted).length;
  if (seen.length > 0 && count('silent') + count('unreadable') === seen.length)
    throw new ProviderOutcomeUnknown();
  if (count('silent') > 0) throw new ProviderUnavailable(ASK_AGAIN_MS);
  return seen.map(({ providerEsimId, standing }) => ({
    providerEsimId,
    standing: standing === 'silent' || standing === 'unreadable' ? 'unknown' : standing,
  }));
}
