import type { ProviderTopupState, ProviderPurchase } from '../../providers/index.js';
import type { Difference, DifferenceKind } from '../difference.js';
import type { BookedEsim, BookedOrder, BookedTopup } from './provider-subjects.repository.js';

const BOUGHT_FOR_NOTHING: DifferenceKind = {
  check: 'upstream_has_no_more',
  severity: 'error',
  what: 'The wholesaler must not charge for a purchase that failed or was canceled here.',
  advice: "Cancel it in the wholesaler's portal, or claim a refund there.",
};
const NOT_BOUGHT: DifferenceKind = {
  check: 'upstream_knows_what_was_issued',
  severity: 'error',
  what: 'The wholesaler must have sold every eSIM that was issued here.',
  advice: 'Ask the wholesaler about the reference; refund the partner if the eSIM does not work.',
};
const TAKEN_BACK: DifferenceKind = {
  check: 'upstream_took_nothing_back',
  severity: 'error',
  what: 'An eSIM that is not canceled here must not be canceled at the wholesaler.',
  advice: 'Ask the wholesaler for the reason, and refund the partner.',
};
const OTHER_QUANTITY: DifferenceKind = {
  check: 'upstream_quantity_agrees',
  severity: 'error',
  what: 'The wholesaler must have sold as many eSIMs as were issued here.',
  advice: 'Claim or cancel the surplus eSIMs. The partner has paid for the issued ones.',
};
const OTHER_TOPUP: DifferenceKind = {
  check: 'upstream_topup_agrees',
  severity: 'error',
  what: 'A top-up must be applied at the wholesaler if and only if it was completed here.',
  advice: 'Completed here only: refund the partner. Applied there only: claim it from the wholesaler.',
};

/** Differences between the provider's records and ours for one ended order. */
export function orderDifferences(
  provider: string,
  order: BookedOrder,
  purchases: readonly ProviderPurchase[],
): readonly Difference[] {
  const subject = {
    order: order.id,
    partner: order.partnerId,
    provider,
    reference: order.request.reference,
  };
  const difference = (kind: DifferenceKind, expected: string, found: string): Difference => ({
    ...kind,
    subject,
    expected,
    found,
  });
  const there = new Map(purchases.map((purchase) => [purchase.providerEsimId, purchase.state]));
  const ours = new Set(order.esims.map(({ upstreamId }) => upstreamId));
  const paid = purchases.filter(({ state }) => state !== 'taken_back').length;
  if (order.status === 'failed')
    return paid === 0 ? [] : [difference(BOUGHT_FOR_NOTHING, 'failed here: nothing sold', `${paid} sold`)];
  const differences: Difference[] = [];
  const unknown = order.esims.filter(({ upstreamId, canceled }) => !canceled && !there.has(upstreamId));
  if (unknown.length > 0)
    differences.push(difference(NOT_BOUGHT, `${order.status} here: sold`, `not known: ${idsOf(unknown)}`));
  const back = order.esims.filter((esim) => !esim.canceled && there.get(esim.upstreamId) === 'taken_back');
  if (back.length > 0)
    differences.push(difference(TAKEN_BACK, `${order.status} here: sold`, `taken back: ${idsOf(back)}`));
  const kept = order.esims.filter((esim) => esim.canceled && (there.get(esim.upstreamId) ?? '') === 'sold');
  if (kept.length > 0)
    differences.push(difference(BOUGHT_FOR_NOTHING, 'canceled here: taken back', `sold: ${idsOf(kept)}`));
  const strange = purchases.filter(
    ({ providerEsimId, state }) => !ours.has(providerEsimId) && state !== 'taken_back',
  );
  if (strange.length > 0)
    differences.push(difference(OTHER_QUANTITY, `${order.quantityIssued} sold`, `${strange.length} besides`));
  return differences;
}

/** Differences between the provider's records and ours for one ended top-up. */
export function topupDifferences(
  provider: string,
  topup: BookedTopup,
  state: ProviderTopupState | null,
): readonly Difference[] {
  const found = state?.state ?? 'unknown';
  const isAgreed = topup.status === 'completed' ? found === 'completed' : !PAID.includes(found);
  if (isAgreed) return [];
  const { id, esimId, partnerId, request } = topup;
  return [
    {
      ...OTHER_TOPUP,
      subject: { topup: id, esim: esimId, partner: partnerId, provider, reference: request.reference },
      expected: topup.status === 'completed' ? 'completed' : 'not applied',
      found,
    },
  ];
}

const PAID: readonly string[] = ['completed', 'in_progress'];

function idsOf(esims: readonly BookedEsim[]): string {
  return esims.map(({ id }) => id).join(' ');
}
