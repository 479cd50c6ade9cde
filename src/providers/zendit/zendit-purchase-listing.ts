import type { ProviderPurchase } from '../esim-provider.js';
import type { ZenditApi } from './zendit-api.js';

/**
 * What has become of purchases, those that failed or were never made left out. One after the other: polls may only
 * join the last of the pace's backlog. A purchase's id is also that of its eSIM.
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
