/** Client of the partner eSIM API. */
export { applyLatest, subjectOf, type Versioned } from './apply-latest.js';
export { EsimClient, type EsimClientOptions } from './client.js';
export { type CallFacts, type CodesOf, EsimApiError, EsimConnectionError, isApiError } from './errors.js';
export type {
  CursorStore,
  EventPage,
  ListEventsOptions,
  Reconciled,
  ReconcileOptions,
  StreamOptions,
} from './events.js';
export type { List, Page, PlanPage } from './list.js';
export {
  endsPurchase,
  type Intent,
  IntentConflictError,
  type IntentOutcome,
  type IntentStore,
  Purchases,
  type Resumed,
  storageNameOf,
} from './purchases.js';
export type { ChangesPage, Shelf } from './resources.js';
export { SQL_STORE_TABLES, SqlCursorStore, SqlIntentStore, type SqlQuery } from './sql-stores.js';
export type { AnswerFacts, CallOptions, WaitingRead, WriteOptions } from './transport.js';
export type * from './types.js';
export type { WaitOptions } from './wait.js';
export {
  unwrapWebhook,
  type UnwrapOptions,
  type WebhookHeaders,
  type WebhookRefusal,
  WebhookVerificationError,
} from './webhooks.js';
