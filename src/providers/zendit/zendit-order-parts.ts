import {
  type ProviderFailure,
  type ProviderOrderParts,
  ProviderOutcomeUnknown,
  type ProviderProfile,
} from '../esim-provider.js';
import type { ProviderPurchase } from '../live-provider.js';
import {
  type NoResponseReason,
  PartialResponse,
  ProviderResponseInvalid,
  toNoResponseReason,
} from '../http/index.js';
import { eachValue } from './settle-each.js';
import type { ZenditApi } from './zendit-api.js';
import { TAKEN_BACK, toFailure } from './zendit-errors.js';
import type { ZenditPurchase } from './zendit-purchase.js';

type Part =
  | { readonly state: 'unknown' | 'running' | 'unusable' | NoResponseReason }
  | { readonly state: 'failed'; readonly failure: ProviderFailure }
  | { readonly state: 'done'; readonly profile: ProviderProfile };

const CALLS_AT_ONCE = 6;

/**
 * State of each of an order's purchases, for support before it ends the order by hand: one call per eSIM.
 * @throws ProviderUnavailable, even when only some purchases can be read
 * @throws ProviderOutcomeUnknown when none can be read
 */
export async function findParts(
  api: Pick<ZenditApi, 'findPurchase'>,
  transactionIds: readonly string[],
  signal: AbortSignal,
): Promise<ProviderOrderParts> {
  const parts = await eachValue(transactionIds, CALLS_AT_ONCE, (id) => findPart(api, id, signal));
  const count = (state: Part['state']): number => parts.filter((part) => part.state === state).length;
  const unsaid = count('silent') + count('unreadable');
  if (unsaid === parts.length) throw new ProviderOutcomeUnknown();
  if (unsaid > 0) throw new PartialResponse();
  return {
    profiles: parts.flatMap((part) => (part.state === 'done' ? [part.profile] : [])),
    running: count('running'),
    unusable: count('unusable'),
    failure: parts.find((part) => part.state === 'failed')?.failure ?? null,
  };
}

/** @throws ProviderUnavailable */
async function findPart(
  api: Pick<ZenditApi, 'findPurchase'>,
  transactionId: string,
  signal: AbortSignal,
): Promise<Part> {
  try {
    return await readPart(api, transactionId, signal);
  } catch (error) {
    // A status outside the contract does not say what comes next.
    if (error instanceof ProviderResponseInvalid && error.path === 'status') return { state: 'running' };
    return { state: toNoResponseReason(error, signal) };
  }
}

async function readPart(
  api: Pick<ZenditApi, 'findPurchase'>,
  transactionId: string,
  signal: AbortSignal,
): Promise<Part> {
  const purchase = await api.findPurchase(transactionId, 'order', signal);
  if (purchase === null) return { state: 'unknown' };
  if (purchase.progress === 'running') return { state: 'running' };
  if (purchase.progress === 'failed') return { state: 'failed', failure: toFailure(purchase.errorCode) };
  // Zendit's own support may have refunded it in the meantime.
  const refund = purchase.refund();
  if (refund === 'running') return { state: 'running' };
  if (refund === 'done') return { state: 'failed', failure: TAKEN_BACK };
  return doneOrUnusable(purchase);
}

function doneOrUnusable(purchase: ZenditPurchase): Part {
  try {
    return { state: 'done', profile: purchase.profile() };
  } catch (error) {
    if (error instanceof ProviderResponseInvalid) return { state: 'unusable' };
    throw error;
  }
}

/**
 * States of purchases, without those that failed or were never made. Reads sequentially, because polls may join only a
 * short backlog at the rate limiter. A purchase and its eSIM share one id.
 * @throws ProviderUnavailable, ProviderOutcomeUnknown
 */
export async function listPurchases(
  api: Pick<ZenditApi, 'findPurchase'>,
  transactionIds: readonly string[],
  signal: AbortSignal,
): Promise<readonly ProviderPurchase[]> {
  const purchases: ProviderPurchase[] = [];
  for (const providerEsimId of transactionIds) {
    const purchase = await api.findPurchase(providerEsimId, 'poll', signal);
    if (purchase === null || purchase.progress === 'failed') continue;
    if (purchase.progress === 'running') {
      purchases.push({ providerEsimId, state: 'in_progress' });
      continue;
    }
    purchases.push({ providerEsimId, state: purchase.refund() === 'done' ? 'taken_back' : 'sold' });
  }
  return purchases;
}
