import { AppError } from '../common/errors/index.js';
import type { ProviderCancelStatus, ProviderOrderParts } from '../providers/index.js';

export const RECONCILE_ACTIONS = ['requery', 'mark_issued', 'mark_failed'] as const;
export type ReconcileAction = (typeof RECONCILE_ACTIONS)[number];
/** What ends an order by support's word. */
export type EndingAction = Exclude<ReconcileAction, 'requery'>;

/** What a provider shows of an order that is being provisioned; null: it does not answer. */
interface OrderLook {
  readonly about: 'processing';
  readonly parts: ProviderOrderParts | null;
}

/** What it shows of one that is to be taken back: each eSIM that is not canceled here; null: it does not answer. */
interface CancellationLook {
  readonly about: 'canceling';
  readonly cancelStatuses: readonly ProviderCancelStatus[] | null;
}

export type UpstreamLook = OrderLook | CancellationLook;

/** The order as it was when the provider was asked, and no worker was at it. */
interface Asked {
  /** A worker that was at it since has raised this: then the word is out of date. */
  readonly fence: number;
  /** For how long the provider may deny what a call did. */
  readonly readLagMs: number;
}

export type OrderWord = OrderLook & Asked;
export type CancellationWord = CancellationLook & Asked;
/** What a provider said a moment ago of an order that support ends. */
export type UpstreamWord = OrderWord | CancellationWord;

/** What the provider said, in counts, for the audit log. */
export function summaryOf(word: UpstreamLook): string {
  if (word.about === 'canceling')
    return word.cancelStatuses?.map(({ cancelStatus }) => cancelStatus).join(', ') ?? 'no answer';
  if (word.parts === null) return 'no answer';
  const { profiles, running, unusable } = word.parts;
  return `${profiles.length} provisioned, ${running} running, ${unusable} unusable`;
}

export function conflict(detail: string): AppError {
  return new AppError('conflict', { detail });
}

export function notWaiting(): AppError {
  return conflict('The order does not wait for its upstream, or the upstream is being asked right now.');
}

/** @throws AppError `conflict` while the provider may still deny what the last call did */
export function refuseTooEarly(lagLeftMs: number): void {
  if (lagLeftMs <= 0) return;
  const seconds = Math.ceil(lagLeftMs / 1_000);
  throw conflict(
    `The upstream was called a moment ago and may not show yet what that did: try again in ${seconds} s.`,
  );
}
