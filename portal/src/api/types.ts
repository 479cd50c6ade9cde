/** Types for the screens: from the OpenAPI document, and for data that only a browser session has. */
import type { Session } from './types.gen.ts';

export type {
  ApiKey,
  Balance as Wallet,
  CreatedWebhookEndpoint as CreatedEndpoint,
  Diagnosis,
  EndpointStats,
  Esim,
  EsimPlan,
  Event,
  Explanation,
  InstallData,
  IssuedApiKey as IssuedKey,
  LoggedCall as Call,
  Money,
  Order,
  RefundRequest,
  RotatedWebhookSecret as RotatedSecret,
  Session,
  Topup,
  Transaction,
  WebhookAttempt as Attempt,
  WebhookDelivery as Delivery,
  WebhookDeliveryWithAttempts as DeliveryWithAttempts,
  WebhookEndpoint as Endpoint,
  WebhookReplay as Replay,
} from './types.gen.ts';

export type Mode = 'sandbox' | 'live';

export type Scope = Session['scopes'][number];

export const EVENT_TYPES = [
  'order.issued',
  'order.failed',
  'esim.activated',
  'esim.expired',
  'esim.usage.threshold',
  'order.topup.completed',
  'order.topup.failed',
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
export type EventType = (typeof EVENT_TYPES)[number];

export type Page<T> = { data: T[]; has_more: boolean; next_cursor: string | null };
