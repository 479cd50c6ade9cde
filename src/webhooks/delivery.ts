import { EVENT_TYPES, type EventType } from '../events/index.js';

/** Event type in the body that `/test` sends; it is not a recorded event and not in the feed. */
export const TEST_EVENT_TYPE = 'webhook.test';
export const DELIVERY_EVENT_TYPES = [...EVENT_TYPES, TEST_EVENT_TYPE] as const;
export type DeliveryEventType = EventType | typeof TEST_EVENT_TYPE;

/** Why a delivery exists; only `event` counts in the equation of D33. */
export const DELIVERY_KINDS = ['event', 'resend', 'replay', 'test'] as const;
export type DeliveryKind = (typeof DELIVERY_KINDS)[number];

/** Stored statuses; `discarding` means discarded while the last attempt is still in flight. */
export type StoredDeliveryStatus = 'pending' | 'discarding' | 'delivered' | 'failed' | 'discarded';

/** Statuses as callers see them: `held` is a pending delivery of a disabled endpoint (D32). */
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'held', 'discarded'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Result of one attempt; `interrupted` does not count toward the six until it is the third in a row (D30). */
export const ATTEMPT_OUTCOMES = ['delivered', 'failed', 'interrupted'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** Phases of an attempt in flight; `waiting` lasts from the request until the response has been read. */
export const ATTEMPT_PHASES = ['dns', 'connect', 'tls', 'waiting'] as const;
export type AttemptPhase = (typeof ATTEMPT_PHASES)[number];

/** One line of the delivery log. */
export interface LoggedAttempt {
  readonly number: number;
  readonly startedAt: Date;
  readonly outcome: AttemptOutcome;
  readonly statusCode: number | null;
  readonly latencyMs: number;
  readonly error: string | null;
  readonly phases: LoggedPhases | null;
  readonly requestHeaders: Readonly<Record<string, string>> | null;
  readonly responseHeaders: Readonly<Record<string, string>> | null;
  readonly responseBody: string | null;
}

/** Duration of an attempt's phases in milliseconds, as logged; see the worker's `AttemptPhases`. */
export interface LoggedPhases {
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number;
}
