import type { ProviderCancelStatus, ProviderOrderParts } from '../providers/index.js';
import type { OrderEntity } from './order.entity.js';
import type { EndingAction, UpstreamLook } from './upstream-word.js';

/**
 * Why what the provider says forbids that support ends the order so; null when it does not (D22). Nothing that may
 * still come is ended, nothing that was bought is failed, nothing is issued without its profile. A cancellation is not
 * called off when the provider has the order back, or is taking it, for nobody could use what was paid; and it is not
 * called done when a customer uses an eSIM, for the provider charges that. One that is still unused there is no reason
 * against it: the provider may give its price back in its own time. Where it is silent, support decides.
 */
export function refusalOf(action: EndingAction, order: OrderEntity, look: UpstreamLook): string | null {
  if (look.about === 'canceling')
    return look.cancelStatuses && cancellationRefusal(action, look.cancelStatuses);
  if (look.parts !== null) return provisioningRefusal(action, order, look.parts);
  return action === 'mark_issued' ? 'The upstream does not answer now.' : null;
}

function provisioningRefusal(
  action: EndingAction,
  { quantity }: OrderEntity,
  { profiles, running }: ProviderOrderParts,
): string | null {
  const share = `${profiles.length} of ${quantity} eSIMs are provisioned, ${running} under way`;
  if (running > 0) return `The upstream is still at it: ${share}.`;
  if (action === 'mark_issued')
    return profiles.length === 0 ? 'The upstream names no eSIM of this order.' : null;
  return profiles.length > 0 ? `The upstream has provisioned it, mark it issued: ${share}.` : null;
}

function cancellationRefusal(
  action: EndingAction,
  cancelStatuses: readonly ProviderCancelStatus[],
): string | null {
  const count = (wanted: ProviderCancelStatus['cancelStatus']): number =>
    cancelStatuses.filter(({ cancelStatus }) => cancelStatus === wanted).length;
  if (action === 'mark_failed')
    return count('in_use') > 0 ? 'An eSIM of the order is in use: mark it issued.' : null;
  if (count('being_canceled') > 0) return 'The upstream is taking the order back right now.';
  const isBack = cancelStatuses.length > 0 && count('canceled') === cancelStatuses.length;
  return isBack ? 'The upstream has taken the order back: mark it failed.' : null;
}
