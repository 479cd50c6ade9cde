import { type ProviderCancelStatus, ProviderOutcomeUnknown } from '../esim-provider.js';
import { PartialResponse, type NoResponseReason } from './partial-response.js';

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
