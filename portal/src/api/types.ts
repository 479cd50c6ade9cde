/** Types for the screens: from the OpenAPI document, and for data that only a browser session has. */
import type {
  Money,
  Order,
  RefundRequest,
  Session,
  WebhookDelivery as Delivery,
  WebhookEndpoint,
} from './types.gen.ts';

export type {
  ApiKey,
  Balance as Wallet,
  CreatedWebhookEndpoint as CreatedEndpoint,
  CurrentAttempt,
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
  WebhookReplay as Replay,
} from './types.gen.ts';

export type Mode = 'sandbox' | 'live';

export type Scope = Session['scopes'][number] | 'catalog:read' | 'esims:write';

/** A package of the catalog, as far as the screens show it. */
export type Package = {
  id: string;
  title: string;
  type: 'country' | 'regional' | 'global';
  region: string | null;
  region_name: string | null;
  coverage: string[];
  kind: 'base' | 'topup';
  data_bytes: number | null;
  data_label: string | null;
  plan: { kind: 'total' | 'daily' | 'unlimited'; days: { min: number; max: number } | null };
  fair_use: {
    full_speed_bytes: number | null;
    per: 'day' | 'plan';
    then: 'slower' | 'stopped' | 'unknown';
    kbps: number | null;
    resets: '24h' | 'midnight' | 'unknown';
  } | null;
  exit_countries: string[] | null;
  max_generation: '3G' | '4G' | '5G' | null;
  hotspot: boolean | null;
  install_within_days: number | null;
  topup: { kinds: string[]; behavior: 'adds' | 'queues' | 'replaces' | 'unknown'; max_count: number | null };
  variant: string | null;
  validity_days: number;
  activation_policy: 'on_install' | 'on_first_use' | 'on_purchase';
  topup_supported: boolean;
  networks: { country: string; name: string }[];
  speed_policy: string | null;
  notes: string | null;
  price: Money;
  price_per_day: Money | null;
  available: boolean;
  updated_at: string;
};

/** `failing_*` are set from the first failure after the last success on. */
export type Endpoint = WebhookEndpoint & {
  failing_since?: string | null;
  failing_cause?: string | null;
  attempts_24h?: { succeeded: number; failed: number };
  deliveries_24h?: { delivered: number; failed: number; pending: number };
};

/** One step in the life of an order. */
export type TimelineEntry = {
  at: string;
  kind: string;
  esim_id: string | null;
  delivery_id: string | null;
  percent: number | null;
  amount: Money | null;
  detail: string | null;
};

export type OrderWithTimeline = Order & {
  accepted_request_id?: string;
  timeline?: TimelineEntry[];
  deliveries?: Delivery[] | null;
  refund_requests?: RefundRequest[];
};

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
