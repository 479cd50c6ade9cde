/**
 * The shapes that the screens use: those of the OpenAPI document, and those that only a browser's session knows.
 */
import type { SessionResponse } from './types.gen.ts';

export type {
  ApiKeyResponse as ApiKey,
  BalanceResponse as Wallet,
  CallResponse as Call,
  CreatedWebhookEndpointResponse as CreatedEndpoint,
  DiagnosisResponse as Diagnosis,
  EndpointStatsResponse as EndpointStats,
  EsimResponse as Esim,
  EventResponse as Event,
  ExplanationResponse as Explanation,
  InstallDataResponse as InstallData,
  IssuedApiKeyResponse as IssuedKey,
  MoneyResponse as Money,
  OrderResponse as Order,
  RotatedWebhookSecretResponse as RotatedSecret,
  TopupResponse as Topup,
  TransactionResponse as Transaction,
  WebhookAttemptResponse as Attempt,
  WebhookDeliveryResponse as Delivery,
  WebhookDeliveryWithAttemptsResponse as DeliveryWithAttempts,
  WebhookEndpointResponse as Endpoint,
  WebhookReplayResponse as Replay,
} from './types.gen.ts';

export type Mode = 'sandbox' | 'live';

/** Who looks, at what, and until when. */
export type Session = SessionResponse;
export type Scope = SessionResponse['scopes'][number];

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
