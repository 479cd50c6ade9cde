/** Types for the screens: from the OpenAPI document, and for data that only a browser session has. */
import type { Session } from './types.gen.ts';

export type {
  ApiKey,
  Attention,
  AutoTopup,
  Balance as Wallet,
  ChecklistStep,
  CreatedInstallLink,
  CreatedWebhookEndpoint as CreatedEndpoint,
  CurrentAttempt,
  Destination,
  Diagnosis,
  EndpointStats,
  Esim,
  EsimPackage as Package,
  EsimPlan,
  Event,
  Explanation,
  InstallData,
  InstallLink,
  IssuedApiKey as IssuedKey,
  ListedPackage,
  LoggedCall as Call,
  Money,
  Order,
  OrderWithTimeline,
  Overview,
  RefundRequest,
  RotatedWebhookSecret as RotatedSecret,
  SearchHit,
  Session,
  TimelineEntry,
  Topup,
  Transaction,
  WebhookAttempt as Attempt,
  WebhookDelivery as Delivery,
  WebhookEndpoint as Endpoint,
  WebhookDeliveryWithAttempts as DeliveryWithAttempts,
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
