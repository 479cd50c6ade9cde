import type { Money } from '../common/money.js';
import type { EsimEntity } from '../esims/index.js';
import type { OrderEvent } from '../events/index.js';
import type { OrderEntity } from '../orders/index.js';
import type { RefundRequestEntity } from '../refunds/index.js';
import type { TopupEntity } from '../topups/index.js';
import { deliveryStatus, type WebhookDeliveryEntity } from '../webhooks/index.js';

/** Changes of an order, its eSIMs, its top-ups and its webhooks. Entries of one moment keep this order. */
export const TIMELINE_KINDS = [
  'accepted',
  'provisioned',
  'failed',
  'installed',
  'profile_changed',
  'first_use',
  'threshold',
  'usage_level',
  'suspended',
  'resumed',
  'revoked',
  'topup_accepted',
  'topup_completed',
  'topup_failed',
  'expiring',
  'expired',
  'refund_requested',
  'refund_approved',
  'refund_rejected',
  'refund_withdrawn',
  'cancel_requested',
  'canceled',
  'webhook_sent',
  'webhook_delivered',
  'webhook_failed',
] as const;
export type TimelineKind = (typeof TIMELINE_KINDS)[number];

/** One entry of a timeline. */
export interface TimelineEntry {
  readonly at: Date;
  readonly kind: TimelineKind;
  readonly esimId?: string;
  readonly topupId?: string;
  readonly refundRequestId?: string;
  readonly eventId?: string;
  readonly deliveryId?: string;
  readonly percent?: number;
  readonly amount?: Money | null;
  /** The reason of a failure, of an expiry, or of a suspension; the new status of a profile; the event of a webhook. */
  readonly detail?: string | null;
}

/** The rows from which a timeline is built. */
export interface TimelineRows {
  readonly order: OrderEntity;
  readonly esims: readonly EsimEntity[];
  readonly topups: readonly TopupEntity[];
  readonly refundRequests: readonly RefundRequestEntity[];
  readonly events: readonly OrderEvent[];
  readonly deliveries: readonly WebhookDeliveryEntity[];
}

/**
 * The timeline, oldest first. Events tell most of it, but are purged earlier than the rows (D44). The rows then still
 * tell when the order, its eSIMs and its top-ups changed.
 */
export function timelineOf(rows: TimelineRows): TimelineEntry[] {
  const recorded = rows.events.flatMap(fromEvent);
  const known = new Set(recorded.map(subjectOf));
  const fromRows = [
    ...factsOfOrder(rows.order),
    ...rows.esims.flatMap(factsOfEsim),
    ...rows.topups.flatMap(factsOfTopup),
    ...rows.refundRequests.flatMap(factsOfRefund),
  ].filter((entry) => !known.has(subjectOf(entry)));
  return [...recorded, ...fromRows, ...rows.deliveries.flatMap(fromDelivery)].sort(
    (a, b) =>
      a.at.getTime() - b.at.getTime() || TIMELINE_KINDS.indexOf(a.kind) - TIMELINE_KINDS.indexOf(b.kind),
  );
}

/** The same for an entry from an event and from a row. */
function subjectOf({ kind, esimId, topupId, refundRequestId }: TimelineEntry): string {
  return `${kind} ${refundRequestId ?? topupId ?? esimId ?? ''}`;
}

function fromEvent(event: OrderEvent): TimelineEntry[] {
  const common = { at: event.happenedAt, eventId: event.id };
  const ofEsim = 'esim_id' in event.data ? { ...common, esimId: event.data.esim_id } : common;
  switch (event.type) {
    case 'order.issued':
      return [{ ...common, kind: 'provisioned' }];
    case 'order.failed':
      return [{ ...common, kind: 'failed', amount: event.data.refunded, detail: event.data.reason }];
    case 'order.canceled':
      return [{ ...common, kind: 'canceled', amount: event.data.refunded }];
    case 'esim.profile.changed': {
      const { profile_status: detail } = event.data;
      return [{ ...ofEsim, kind: detail === 'installed' ? 'installed' : 'profile_changed', detail }];
    }
    case 'esim.activated':
      return [{ ...ofEsim, kind: 'first_use' }];
    case 'esim.usage.threshold':
      return [{ ...ofEsim, kind: 'threshold', percent: event.data.threshold_percent }];
    case 'esim.usage.level':
      return [{ ...ofEsim, kind: 'usage_level', percent: event.data.percent }];
    case 'esim.expiring':
      return [{ ...ofEsim, kind: 'expiring', detail: event.data.expires_at }];
    case 'esim.expired':
      return [{ ...ofEsim, kind: 'expired', detail: event.data.reason }];
    case 'esim.suspended':
      return [{ ...ofEsim, kind: 'suspended', detail: event.data.reason }];
    case 'esim.resumed':
      return [{ ...ofEsim, kind: 'resumed', detail: event.data.reason }];
    case 'esim.revoked':
      return [{ ...ofEsim, kind: 'revoked', detail: event.data.reason }];
    case 'order.topup.completed':
      return [{ ...ofEsim, kind: 'topup_completed', topupId: event.data.topup_id }];
    case 'order.topup.failed':
      return [{ ...ofEsim, kind: 'topup_failed', topupId: event.data.topup_id, detail: event.data.reason }];
    case 'refund.settled': {
      const { refund_request_id: refundRequestId, status, amount } = event.data;
      return [{ ...ofEsim, kind: `refund_${status}`, refundRequestId, amount }];
    }
    case 'wallet.low':
    case 'catalog.changed':
      return [];
  }
}

function factsOfOrder(order: OrderEntity): TimelineEntry[] {
  const { createdAt, issuedAt, failedAt, cancelRequestedAt, failureReason, status, updatedAt } = order;
  const amount = { amount: order.refundedAmount, currency: order.currency };
  return [
    { at: createdAt, kind: 'accepted' },
    ...(issuedAt ? [{ at: issuedAt, kind: 'provisioned' } as const] : []),
    ...(failedAt ? [{ at: failedAt, kind: 'failed', amount, detail: failureReason } as const] : []),
    // Null once the cancellation has ended.
    ...(cancelRequestedAt ? [{ at: cancelRequestedAt, kind: 'cancel_requested' } as const] : []),
    // Final: nothing changes a canceled order.
    ...(status === 'canceled' ? [{ at: updatedAt, kind: 'canceled', amount } as const] : []),
  ];
}

function factsOfEsim({
  id: esimId,
  activatedAt,
  revokedAt,
  status,
  expiresAt,
  installBy,
}: EsimEntity): TimelineEntry[] {
  const endedAt = status === 'expired' ? (expiresAt ?? installBy) : null;
  return [
    ...(activatedAt ? [{ at: activatedAt, kind: 'first_use', esimId } as const] : []),
    ...(revokedAt ? [{ at: revokedAt, kind: 'revoked', esimId } as const] : []),
    ...(endedAt ? [{ at: endedAt, kind: 'expired', esimId } as const] : []),
  ];
}

function factsOfTopup(topup: TopupEntity): TimelineEntry[] {
  const { id: topupId, esimId, createdAt, completedAt, failedAt, failureReason } = topup;
  const subject = { topupId, esimId };
  const amount = { amount: topup.priceAmount, currency: topup.currency };
  return [
    { at: createdAt, kind: 'topup_accepted', amount, ...subject },
    ...(completedAt ? [{ at: completedAt, kind: 'topup_completed', ...subject } as const] : []),
    ...(failedAt ? [{ at: failedAt, kind: 'topup_failed', detail: failureReason, ...subject } as const] : []),
  ];
}

function factsOfRefund(request: RefundRequestEntity): TimelineEntry[] {
  const { id: refundRequestId, esimId, createdAt, decidedAt, status, amount, currency } = request;
  const subject = { refundRequestId, esimId };
  const requested: TimelineEntry = {
    at: createdAt,
    kind: 'refund_requested',
    detail: request.reason,
    ...subject,
  };
  if (status === 'pending' || decidedAt === null) return [requested];
  const kind = status === 'canceled' ? 'refund_withdrawn' : (`refund_${status}` as const);
  const refund = amount === null ? null : { amount, currency };
  return [requested, { at: decidedAt, kind, amount: refund, detail: request.note, ...subject }];
}

/** A delivery is one entry: how it ended, or its latest attempt. */
function fromDelivery(delivery: WebhookDeliveryEntity): TimelineEntry[] {
  const { id: deliveryId, eventId, eventType: detail, deliveredAt, endedAt } = delivery;
  const common = { deliveryId, ...(eventId === null ? {} : { eventId }), detail };
  const status = deliveryStatus(delivery);
  if (status === 'delivered') return [{ ...common, at: deliveredAt!, kind: 'webhook_delivered' }];
  if (status === 'failed') return [{ ...common, at: endedAt!, kind: 'webhook_failed' }];
  const sentAt = (delivery.inFlight ? delivery.startedAt : null) ?? delivery.lastStartedAt;
  return sentAt === null ? [] : [{ ...common, at: sentAt, kind: 'webhook_sent' }];
}
