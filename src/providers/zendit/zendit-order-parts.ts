import type { ProviderFailure, ProviderOrderParts, ProviderProfile } from '../esim-provider.js';
import { UpstreamAnswerInvalid } from '../upstream/index.js';
import { eachValue } from './settle-each.js';
import type { ZenditApi } from './zendit-api.js';
import { toFailure } from './zendit-failure.js';
import type { ZenditPurchase } from './zendit-purchase.js';

type Part =
  | { readonly state: 'unknown' | 'running' | 'unusable' }
  | { readonly state: 'failed'; readonly failure: ProviderFailure }
  | { readonly state: 'done'; readonly profile: ProviderProfile };

const CALLS_AT_ONCE = 6;

const TAKEN_BACK: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The provider took eSIMs of the order back.',
};

/**
 * What has become of each purchase of an order, for somebody who has to end it by hand: one or two calls per eSIM.
 * @throws ProviderUnavailable, ProviderOutcomeUnknown
 */
export async function findParts(
  api: Pick<ZenditApi, 'findPurchase' | 'findRefund'>,
  transactionIds: readonly string[],
  signal: AbortSignal,
): Promise<ProviderOrderParts> {
  const parts = await eachValue(transactionIds, CALLS_AT_ONCE, (id) => findPart(api, id, signal));
  const count = (state: Part['state']): number => parts.filter((part) => part.state === state).length;
  return {
    profiles: parts.flatMap((part) => (part.state === 'done' ? [part.profile] : [])),
    running: count('running'),
    unusable: count('unusable'),
    failure: parts.find((part) => part.state === 'failed')?.failure ?? null,
  };
}

async function findPart(
  api: Pick<ZenditApi, 'findPurchase' | 'findRefund'>,
  transactionId: string,
  signal: AbortSignal,
): Promise<Part> {
  const purchase = await api.findPurchase(transactionId, 'order', signal);
  if (purchase === null) return { state: 'unknown' };
  if (purchase.progress === 'running') return { state: 'running' };
  if (purchase.progress === 'failed') return { state: 'failed', failure: toFailure(purchase.errorCode) };
  // Zendit's own support may have given its price back meanwhile.
  const refund = await api.findRefund(transactionId, signal);
  if (refund === 'running') return { state: 'running' };
  return refund === 'done' ? { state: 'failed', failure: TAKEN_BACK } : doneOrUnusable(purchase);
}

function doneOrUnusable(purchase: ZenditPurchase): Part {
  try {
    return { state: 'done', profile: purchase.profile() };
  } catch (error) {
    if (error instanceof UpstreamAnswerInvalid) return { state: 'unusable' };
    throw error;
  }
}
