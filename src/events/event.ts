import type { Mode } from '../common/mode.js';
import type { Money } from '../common/money.js';

/** The document's event types (spec section 6). An endpoint that names no types receives these, for ever (D58). */
export const DOCUMENT_EVENT_TYPES = [
  'order.issued',
  'order.failed',
  'esim.activated',
  'esim.expired',
  'esim.usage.threshold',
  'order.topup.completed',
  'order.topup.failed',
] as const;

/** Types that only an endpoint receives that names them, or `*`. */
export const OPT_IN_EVENT_TYPES = [
  'order.canceled',
  'esim.profile.changed',
  'esim.usage.level',
  'esim.expiring',
  'esim.suspended',
  'esim.resumed',
  'esim.revoked',
  'refund.settled',
  'wallet.low',
  'catalog.changed',
] as const;

export const EVENT_TYPES = [...DOCUMENT_EVENT_TYPES, ...OPT_IN_EVENT_TYPES] as const;
export type EventType = (typeof EVENT_TYPES)[number];

interface EsimIdentity {
  readonly esim_id: string;
  readonly order_id: string;
  readonly iccid: string;
}

interface EsimControl extends EsimIdentity {
  readonly reason: string | null;
  readonly version: number;
}

interface TopupIdentity extends EsimIdentity {
  readonly topup_id: string;
  readonly package_id: string;
  readonly reference: string | null;
}

/**
 * `data` of every event type as it is sent (spec section 6, D28); `version` is that of the order, eSIM or top-up (D48).
 */
export interface EventData {
  'order.issued': {
    readonly order_id: string;
    readonly reference: string | null;
    readonly package_id: string;
    readonly quantity_issued: number;
    readonly quantity_failed: number;
    readonly esims: readonly { readonly esim_id: string; readonly iccid: string }[];
    readonly version: number;
  };
  'order.failed': {
    readonly order_id: string;
    readonly reference: string | null;
    readonly package_id: string;
    readonly code: string;
    readonly reason: string;
    readonly refunded: Money;
    readonly version: number;
  };
  'esim.activated': EsimIdentity;
  'esim.expired': EsimIdentity & {
    readonly reason: 'validity_ended' | 'never_used';
    readonly version: number;
  };
  'esim.usage.threshold': EsimIdentity & {
    readonly threshold_percent: number;
    readonly used_bytes: number;
    readonly total_bytes: number;
    readonly as_of: string;
    readonly version: number;
  };
  'order.topup.completed': TopupIdentity & {
    readonly data_added_bytes: number | null;
    readonly validity_added_days: number;
    readonly version: number;
  };
  'order.topup.failed': TopupIdentity & {
    readonly code: string;
    readonly reason: string;
    readonly version: number;
  };
  'order.canceled': {
    readonly order_id: string;
    readonly reference: string | null;
    readonly package_id: string;
    readonly refunded: Money;
    readonly version: number;
  };
  'esim.profile.changed': EsimIdentity & {
    readonly profile_status: string;
    readonly previous: string;
    readonly version: number;
  };
  'esim.usage.level': EsimIdentity & {
    readonly percent: number;
    readonly used_bytes: number;
    readonly total_bytes: number;
    readonly as_of: string;
    readonly version: number;
  };
  'esim.expiring': EsimIdentity & {
    readonly hours_left: number;
    readonly expires_at: string;
    readonly version: number;
  };
  'esim.suspended': EsimControl;
  'esim.resumed': EsimControl;
  'esim.revoked': EsimControl;
  'refund.settled': {
    readonly refund_request_id: string;
    readonly esim_id: string;
    readonly order_id: string;
    readonly status: 'approved' | 'rejected';
    /** Null if the request was rejected. */
    readonly amount: Money | null;
  };
  /** Amounts in minor units of `currency`. */
  'wallet.low': {
    readonly currency: string;
    readonly available: number;
    readonly threshold: number;
  };
  /** Numbers of packages. */
  'catalog.changed': {
    readonly changes_url: string;
    readonly added: number;
    readonly changed: number;
    readonly withdrawn: number;
  };
}

/** A state change to report to a partner, before it has an id. */
export type NewEvent = {
  [Type in EventType]: {
    readonly type: Type;
    readonly partnerId: string;
    readonly mode: Mode;
    readonly happenedAt: Date;
    readonly data: EventData[Type];
    /** Trace of the cause (D53); defaults to the trace of the current work. */
    readonly traceparent?: string | null;
  };
}[EventType];
