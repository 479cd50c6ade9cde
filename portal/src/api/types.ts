/**
 * The shapes that the screens use: those of the OpenAPI document, and those that only a browser's session knows.
 */
import type {
  ApiKeyResponse,
  CallResponse,
  WebhookAttemptResponse,
  WebhookDeliveryResponse,
  WebhookDeliveryWithAttemptsResponse,
  WebhookEndpointResponse,
} from './types.gen.ts';

export type {
  CreatedWebhookEndpointResponse as CreatedEndpoint,
  EsimResponse as Esim,
  EventResponse as Event,
  IssuedApiKeyResponse as IssuedKey,
  LedgerTransactionResponse as Transaction,
  MoneyResponse as Money,
  OrderResponse as Order,
  RotatedWebhookSecretResponse as RotatedSecret,
  TopupResponse as Topup,
  WalletResponse as Wallet,
  WebhookReplayResponse as Replay,
} from './types.gen.ts';

export type Mode = 'sandbox' | 'live';

export type Scope =
  | 'keys:read'
  | 'keys:write'
  | 'webhooks:read'
  | 'webhooks:write'
  | 'webhooks:replay'
  | 'orders:read'
  | 'requests:read'
  | 'wallet:read';

/** Who looks, at what, and until when. */
export type Session = {
  id: string;
  partner: { id: string; name: string; status: string };
  actor: { id: string; name?: string | null };
  modes: Mode[];
  scopes: Scope[];
  expires_at: string;
  /** Until then the session may do what needs a young one. */
  step_up_until: string;
  return_url?: string | null;
  /** Where the partner's own programs call the API. */
  api_url?: string | null;
  branding?: { name?: string | null; logo_url?: string | null; accent?: string | null } | null;
};

export type ApiKey = ApiKeyResponse & { created_by?: string | null; uses_24h?: number };

/** What the last attempt of a delivery came to. */
export type LastAttempt = Pick<
  WebhookAttemptResponse,
  'number' | 'started_at' | 'outcome' | 'status_code' | 'latency_ms' | 'error'
>;
export type Attempt = WebhookAttemptResponse;
export type Delivery = WebhookDeliveryResponse & { last_attempt?: LastAttempt | null };
export type DeliveryWithAttempts = WebhookDeliveryWithAttemptsResponse & {
  last_attempt?: LastAttempt | null;
};

export type Endpoint = WebhookEndpointResponse & {
  last_success_at?: string | null;
  pending_count?: number;
  held_count?: number;
  failed_since_last_success?: number;
  previous_secret_until?: string | null;
};

/** One bucket of an endpoint's statistics. Times in milliseconds. */
export type StatsBucket = {
  at: string;
  delivered: number;
  failed: number;
  p50_ms: number | null;
  p95_ms: number | null;
};

/** Why a delivery is where it is, in words. */
export type Explanation = {
  cause: string;
  summary?: string;
  responsible?: string;
  whose?: string;
  cure?: string;
  evidence?: string | string[] | null;
  next?: string | null;
  next_attempt_at?: string | null;
};

/** What the signature doctor found. */
export type Diagnosis = { valid: boolean; diagnosis: string; explanation: string; cure?: string | null };

/** What installs an eSIM on a phone. Asking for it is logged. */
export type InstallData = {
  smdp_address: string;
  matching_id: string;
  activation_code: string;
  confirmation_code?: string | null;
  install: { ios_url: string; android_url: string };
  /** The QR code. */
  svg: string;
};

export type Call = CallResponse;

export const EVENT_TYPES = [
  'order.issued',
  'order.failed',
  'esim.activated',
  'esim.expired',
  'esim.usage.threshold',
  'order.topup.completed',
  'order.topup.failed',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export type Page<T> = { data: T[]; has_more: boolean; next_cursor: string | null };
