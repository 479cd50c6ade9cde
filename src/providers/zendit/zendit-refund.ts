import type { ZenditApi } from './zendit-api.js';
import type { ZenditProgress } from './zendit-purchase.js';

/**
 * Where the refund of a purchase stands; null when there is none. The purchase says so itself; where it shows no end,
 * the refund is asked for too, because a second one is posted on the word of this look.
 * @throws ProviderUnavailable, ProviderOutcomeUnknown
 */
export async function lookForRefund(
  api: Pick<ZenditApi, 'findPurchase' | 'findRefund'>,
  transactionId: string,
  signal: AbortSignal,
): Promise<ZenditProgress | null> {
  const purchase = await api.findPurchase(transactionId, 'order', signal);
  const own = purchase?.refund() ?? null;
  if (own === 'done' || own === 'failed') return own;
  return (await api.findRefund(transactionId, signal)) ?? own;
}
