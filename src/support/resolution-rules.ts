import { AppError } from '../common/errors/index.js';
import type { OrderEntity } from '../orders/index.js';
import type {
  PlacementKind,
  ProviderCancelStatus,
  ProviderOrderParts,
  ProviderTopupState,
} from '../providers/index.js';
import type { Purchase } from '../purchases/index.js';

/** Support's actions on an order that needs review. */
export const RESOLVE_ORDER_ACTIONS = ['requery', 'mark_issued', 'mark_failed'] as const;
export type ResolveOrderAction = (typeof RESOLVE_ORDER_ACTIONS)[number];
/** Actions that give the order an outcome. */
export type OrderOutcomeAction = Exclude<ResolveOrderAction, 'requery'>;

/** Support's actions on a top-up that needs review. */
export const RESOLVE_TOPUP_ACTIONS = ['requery', 'mark_completed', 'mark_failed'] as const;
export type ResolveTopupAction = (typeof RESOLVE_TOPUP_ACTIONS)[number];
export type TopupOutcomeAction = Exclude<ResolveTopupAction, 'requery'>;

/** Provider state of an order that is being provisioned; null when the provider does not respond. */
export interface ProcessingSnapshot {
  readonly orderStatus: 'processing';
  readonly parts: ProviderOrderParts | null;
}

/**
 * Provider state of an order that is being canceled: each eSIM that is not canceled here; null when the provider does
 * not respond.
 */
export interface CancelingSnapshot {
  readonly orderStatus: 'canceling';
  readonly cancelStatuses: readonly ProviderCancelStatus[] | null;
}

export type ProviderSnapshot = ProcessingSnapshot | CancelingSnapshot;

/** Provider state of a top-up. Support may choose either outcome only when it is `silent`, for whatever reason. */
export type ProviderState =
  | ProviderTopupState
  | { readonly state: 'not_applied' }
  | { readonly state: 'silent' }
  | { readonly state: 'too_early' };

/**
 * Why the provider's state forbids the action; null when it does not (D22). Nothing that may still arrive is ended,
 * nothing that was bought is failed, and nothing is issued without its profile. A cancellation cannot be revoked while
 * the provider has canceled or is canceling the order, because nobody could use the paid eSIMs. It cannot be completed
 * while a customer uses an eSIM, because the provider charges for it. An unused eSIM at the provider is no obstacle:
 * the provider may refund it later. Without a response from the provider, support decides.
 */
export function orderRefusal(
  action: OrderOutcomeAction,
  order: OrderEntity,
  snapshot: ProviderSnapshot,
): string | null {
  if (snapshot.orderStatus === 'canceling')
    return snapshot.cancelStatuses && cancellationRefusal(action, snapshot.cancelStatuses);
  if (snapshot.parts !== null) return provisioningRefusal(action, order, snapshot.parts);
  return action === 'mark_issued' ? 'The wholesaler does not respond. Try again in a minute.' : null;
}

function provisioningRefusal(
  action: OrderOutcomeAction,
  { quantity }: OrderEntity,
  { profiles, running }: ProviderOrderParts,
): string | null {
  const share = `${profiles.length} of ${quantity} eSIMs are provisioned, ${running} in progress`;
  if (running > 0) return `The wholesaler is still working on the order: ${share}. Try again later.`;
  if (action === 'mark_issued')
    return profiles.length === 0
      ? 'The wholesaler has no eSIM for this order. Mark it failed, or try again later.'
      : null;
  return profiles.length > 0 ? `The wholesaler has provisioned the order: ${share}. Mark it issued.` : null;
}

function cancellationRefusal(
  action: OrderOutcomeAction,
  cancelStatuses: readonly ProviderCancelStatus[],
): string | null {
  const count = (wanted: ProviderCancelStatus['cancelStatus']): number =>
    cancelStatuses.filter(({ cancelStatus }) => cancelStatus === wanted).length;
  if (action === 'mark_failed')
    return count('in_use') > 0 ? 'An eSIM of the order is in use. Mark the order issued.' : null;
  if (count('being_canceled') > 0) return 'The wholesaler is canceling the order right now. Try again later.';
  const isBack = cancelStatuses.length > 0 && count('canceled') === cancelStatuses.length;
  return isBack ? 'The wholesaler has canceled the order. Mark it failed.' : null;
}

const TOO_EARLY = 'The wholesaler may not show the last placement yet. Try again in a minute.';
const IN_PROGRESS = 'The wholesaler is still working on the top-up. Try again later.';

const TOPUP_REFUSALS: Readonly<
  Record<TopupOutcomeAction, Readonly<Partial<Record<ProviderState['state'], string>>>>
> = {
  mark_completed: {
    too_early: TOO_EARLY,
    in_progress: IN_PROGRESS,
    not_applied: 'The wholesaler has not applied the top-up. Mark it failed.',
    rejected: 'The wholesaler has rejected the top-up. Mark it failed.',
  },
  mark_failed: {
    too_early: TOO_EARLY,
    in_progress: IN_PROGRESS,
    completed: 'The wholesaler has applied the top-up. Mark it completed.',
  },
};

/** Like `orderRefusal`, for a top-up. */
export function topupRefusal(action: TopupOutcomeAction, { state }: ProviderState): string | null {
  return TOPUP_REFUSALS[action][state] ?? null;
}

export function conflict(detail: string): AppError {
  return new AppError('conflict', { detail });
}

const NOUNS: Readonly<Record<PlacementKind, string>> = { order: 'order', topup: 'top-up' };

/** Statuses in which a purchase waits for its provider's result. */
const WAITING: readonly string[] = ['processing', 'canceling'];

/** Why support cannot decide on the purchase now: it does not wait for its provider, or a worker works on it. */
export function undecidable(kind: PlacementKind, { status }: Pick<Purchase, 'status'>): AppError {
  const noun = NOUNS[kind];
  if (WAITING.includes(status))
    return conflict(
      `A worker is querying the wholesaler about the ${noun} right now. Try again in a few seconds with a new Idempotency-Key.`,
    );
  if (status === 'pending')
    return conflict(
      `The ${noun} is pending: a worker has not placed it at the wholesaler yet. Try again later.`,
    );
  return conflict(
    `The ${noun} is not waiting for its wholesaler: its status is ${status}. Fetch the ${noun} for its outcome.`,
  );
}
