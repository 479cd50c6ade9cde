import { actionsOfferedBy } from '../providers/index.js';
import { AppError } from '../common/errors/index.js';
import { CONTROL_ACTIONS, type ControlAction, isUntouched } from './esim.js';
import type { EsimEntity } from './esim.entity.js';

/** Partners can request these for an eSIM. `cancel` concerns its whole order. */
export const ESIM_ACTIONS = [...CONTROL_ACTIONS, 'cancel', 'replace'] as const;
export type EsimAction = (typeof ESIM_ACTIONS)[number];

/** The fields of an eSIM that decide what can be requested for it. */
export type ActedEsim = Pick<
  EsimEntity,
  | 'id'
  | 'mode'
  | 'provider'
  | 'status'
  | 'profileStatus'
  | 'pendingAction'
  | 'activatedAt'
  | 'installBy'
  | 'expiresAt'
  | 'plans'
>;

/** An eSIM's order, as far as it decides what can be requested for the eSIM. */
export interface OrderSituation {
  /** `issued` or `partially_issued`. */
  readonly isIssued: boolean;
  /** All eSIMs of the order. */
  readonly esims: readonly ActedEsim[];
  /** Ids of those that have a top-up which has not failed. */
  readonly toppedUp: ReadonlySet<string>;
  /** Ids of those that an approved request refunded: that money cannot pay for a replacement. */
  readonly refunded: ReadonlySet<string>;
  /** The database's time of reading (D40). */
  readonly readAt: Date;
}

/** The actions that a partner can request for an eSIM now. */
export interface PossibleActions {
  readonly actions: readonly EsimAction[];
  /** The end of the first eSIM of the order, which ends the right to cancel; null without that right or a known end. */
  readonly cancelableUntil: Date | null;
}

/** Decides what can be requested for an eSIM (D70). Responses show it, and the operations refuse everything else. */
export function actionsOf(esim: ActedEsim, order: OrderSituation): PossibleActions {
  const isCancelable = canCancel(order);
  const actions = ESIM_ACTIONS.filter((action) => {
    if (action === 'cancel') return isCancelable && esim.status !== 'canceled';
    return action === 'replace' ? canReplace(esim, order) : canControl(esim, order, action);
  });
  return { actions, cancelableUntil: actions.includes('cancel') ? firstEnd(order) : null };
}

/** @throws AppError `not_supported` unless `actionsOf` lists the action. */
export function requireAction(esim: ActedEsim, order: OrderSituation, action: EsimAction): void {
  if (actionsOf(esim, order).actions.includes(action)) return;
  const { pendingAction } = esim;
  if (pendingAction === null) throw new AppError('not_supported');
  throw new AppError('not_supported', {
    detail: `The action ${pendingAction} is pending. Wait until \`pending_action\` of the eSIM is null, then request this again.`,
  });
}

/**
 * Whether the order can be canceled: it is issued, and nothing of it was downloaded, topped up or changed (D22, Cancel).
 */
export function canCancel({ isIssued, esims, toppedUp, readAt }: OrderSituation): boolean {
  const uncanceled = esims.filter(({ status }) => status !== 'canceled');
  return (
    isIssued &&
    uncanceled.length > 0 &&
    toppedUp.size === 0 &&
    uncanceled.every((esim) => isFree(esim, readAt))
  );
}

function canReplace(esim: ActedEsim, { isIssued, toppedUp, refunded, readAt }: OrderSituation): boolean {
  return isIssued && !toppedUp.has(esim.id) && !refunded.has(esim.id) && isFree(esim, readAt);
}

function canControl(esim: ActedEsim, { isIssued, readAt }: OrderSituation, action: ControlAction): boolean {
  const isOffered = actionsOfferedBy(esim.provider).includes(action);
  if (!isOffered || !isIssued || esim.pendingAction !== null || hasEnded(esim, readAt)) return false;
  const isWorking = esim.status === 'issued' || esim.status === 'active' || esim.status === 'depleted';
  switch (action) {
    case 'suspend':
      return isWorking;
    case 'resume':
      return esim.status === 'suspended';
    case 'revoke':
      return isWorking || esim.status === 'suspended';
  }
}

function isFree(esim: ActedEsim, now: Date): boolean {
  return isUntouched(esim) && esim.pendingAction === null && !hasEnded(esim, now);
}

function firstEnd({ esims }: OrderSituation): Date | null {
  const ends = esims.flatMap((esim) => (esim.status === 'canceled' ? [] : (endOf(esim) ?? [])));
  return ends.length === 0 ? null : new Date(Math.min(...ends.map((end) => end.getTime())));
}

/** Whether the sweep is about to expire it. While a plan waits behind the one in use, the end is unknown. */
function hasEnded(esim: ActedEsim, now: Date): boolean {
  const end = endOf(esim);
  const hasNextPlan = esim.activatedAt !== null && esim.plans.some(({ status }) => status === 'queued');
  return end !== null && end <= now && !hasNextPlan;
}

function endOf({ expiresAt, installBy }: ActedEsim): Date | null {
  return expiresAt ?? installBy;
}
