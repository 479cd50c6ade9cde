/** Types for the screens: from the OpenAPI document, and for data that only a browser session has. */
import type { Session } from './types.gen.ts';

export type {
  ApiKey,
  Attention,
  Balance as Wallet,
  ChecklistStep,
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

export type InstallLink = {
  id: string;
  esim_id: string;
  expires_at: string;
  opened_count: number;
  last_opened_at: string | null;
  created_at: string;
};

/** `url` and `access_code` are only in the first response. */
export type CreatedInstallLink = InstallLink & { url: string | null; access_code: string | null };

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
