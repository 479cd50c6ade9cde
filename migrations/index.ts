import { CreatePartnersAndKeys1763700000001 } from './1763700000001-create-partners-and-keys.js';
import { CreateIdempotencyAndCallLog1763700000002 } from './1763700000002-create-idempotency-and-call-log.js';
import { CreateCatalog1763700000003 } from './1763700000003-create-catalog.js';
import { CreateOrdersAndEsims1763700000004 } from './1763700000004-create-orders-and-esims.js';
import { CreateEventsAndWebhooks1763700000005 } from './1763700000005-create-events-and-webhooks.js';
import { PaceWebhooksAndReplay1763700000006 } from './1763700000006-pace-webhooks-and-replay.js';
import { CreateWallets1763700000007 } from './1763700000007-create-wallets.js';
import { CreateTopups1763700000008 } from './1763700000008-create-topups.js';
import { CreateUpstreamPace1763700000009 } from './1763700000009-create-upstream-pace.js';
import { CreateWholesale1763700000010 } from './1763700000010-create-wholesale.js';
import { CreatePolling1763700000011 } from './1763700000011-create-polling.js';
import { CreateReconciliation1763700000012 } from './1763700000012-create-reconciliation.js';
import { AddTopupLastError1763700000013 } from './1763700000013-add-topup-last-error.js';
import { IndexOpenTopups1763700000014 } from './1763700000014-index-open-topups.js';
import { RememberSyncSettings1763700000015 } from './1763700000015-remember-sync-settings.js';
import { CreateProviderPlacements1763700000016 } from './1763700000016-create-provider-placements.js';
import { TellPackageTerms1763700000017 } from './1763700000017-tell-package-terms.js';
import { CountSuppressedCalls1763700000020 } from './1763700000020-count-suppressed-calls.js';
import { DivideWork1763700000021 } from './1763700000021-divide-work.js';
import { IndexListFilters1763700000022 } from './1763700000022-index-list-filters.js';
import { IndexWhatIsPurged1763700000023 } from './1763700000023-index-what-is-purged.js';
import { KeepWhatWasSold1763700000024 } from './1763700000024-keep-what-was-sold.js';
import { ContinueReconciliation1763700000025 } from './1763700000025-continue-reconciliation.js';
import { RecordEvents1763700000028 } from './1763700000028-record-events.js';
import { CreatePortalSessions1763700000029 } from './1763700000029-create-portal-sessions.js';
import { RollUpWebhookAttempts1763700000030 } from './1763700000030-roll-up-webhook-attempts.js';
import { NumberChanges1763700000033 } from './1763700000033-number-changes.js';
import { IndexEventsOfOrders1763700000034 } from './1763700000034-index-events-of-orders.js';
import { ChooseSignatureSchemes1763700000035 } from './1763700000035-choose-signature-schemes.js';
import { ClaimFromManyEndpoints1763700000036 } from './1763700000036-claim-from-many-endpoints.js';
import { IndexRecentReplays1763700000038 } from './1763700000038-index-recent-replays.js';
import { DateDisabledEndpoints1763700000039 } from './1763700000039-date-disabled-endpoints.js';
import { CarryTraceContext1763700000040 } from './1763700000040-carry-trace-context.js';
import { RestoreEpochs1763700000041 } from './1763700000041-restore-epochs.js';
import { ClaimBehindDiscards1763700000042 } from './1763700000042-claim-behind-discards.js';
import { ClaimAllAtOnce1763700000043 } from './1763700000043-claim-all-at-once.js';
import { IndexKeyIds1763700000051 } from './1763700000051-index-key-ids.js';
import { CreateSandboxQuotas1763700000052 } from './1763700000052-create-sandbox-quotas.js';
import { OwnEndpoints1763700000060 } from './1763700000060-own-endpoints.js';
import { JoinBacklogJobs1763700000061 } from './1763700000061-join-backlog-jobs.js';
import { IndexOpenDeliveries1763700000062 } from './1763700000062-index-open-deliveries.js';
import { StatePackageTerms1763700000063 } from './1763700000063-state-package-terms.js';
import { SellDays1763700000064 } from './1763700000064-sell-days.js';
import { RecordCatalogChanges1763700000067 } from './1763700000067-record-catalog-changes.js';
import { ListEsimPlans1763700000070 } from './1763700000070-list-esim-plans.js';
import { RestrictApiKeys1763700000080 } from './1763700000080-restrict-api-keys.js';
import { OptIntoEvents1763700000081 } from './1763700000081-opt-into-events.js';
import { ControlEsims1763700000082 } from './1763700000082-control-esims.js';
import { CreateRefundRequests1763700000083 } from './1763700000083-create-refund-requests.js';
import { TopUpAutomatically1763700000084 } from './1763700000084-top-up-automatically.js';
import { DateFirstFailures1763700000085 } from './1763700000085-date-first-failures.js';
import { RollUpActivity1763700000086 } from './1763700000086-roll-up-activity.js';
import { ResolveAlerts1763700000087 } from './1763700000087-resolve-alerts.js';
import { SearchAcrossPartners1763700000088 } from './1763700000088-search-across-partners.js';
import { CreateInstallLinks1763700000089 } from './1763700000089-create-install-links.js';
import { ShowAttemptPhases1763700000090 } from './1763700000090-show-attempt-phases.js';

/** Every migration, oldest first. Listed explicitly: TypeORM's globs load TypeScript and JavaScript twice. */
export const MIGRATIONS = [
  CreatePartnersAndKeys1763700000001,
  CreateIdempotencyAndCallLog1763700000002,
  CreateCatalog1763700000003,
  CreateOrdersAndEsims1763700000004,
  CreateEventsAndWebhooks1763700000005,
  PaceWebhooksAndReplay1763700000006,
  CreateWallets1763700000007,
  CreateTopups1763700000008,
  CreateUpstreamPace1763700000009,
  CreateWholesale1763700000010,
  CreatePolling1763700000011,
  CreateReconciliation1763700000012,
  AddTopupLastError1763700000013,
  IndexOpenTopups1763700000014,
  RememberSyncSettings1763700000015,
  CreateProviderPlacements1763700000016,
  TellPackageTerms1763700000017,
  CountSuppressedCalls1763700000020,
  DivideWork1763700000021,
  IndexListFilters1763700000022,
  IndexWhatIsPurged1763700000023,
  KeepWhatWasSold1763700000024,
  ContinueReconciliation1763700000025,
  RecordEvents1763700000028,
  CreatePortalSessions1763700000029,
  RollUpWebhookAttempts1763700000030,
  NumberChanges1763700000033,
  IndexEventsOfOrders1763700000034,
  ChooseSignatureSchemes1763700000035,
  ClaimFromManyEndpoints1763700000036,
  IndexRecentReplays1763700000038,
  DateDisabledEndpoints1763700000039,
  CarryTraceContext1763700000040,
  RestoreEpochs1763700000041,
  ClaimBehindDiscards1763700000042,
  ClaimAllAtOnce1763700000043,
  IndexKeyIds1763700000051,
  CreateSandboxQuotas1763700000052,
  OwnEndpoints1763700000060,
  JoinBacklogJobs1763700000061,
  IndexOpenDeliveries1763700000062,
  StatePackageTerms1763700000063,
  SellDays1763700000064,
  RecordCatalogChanges1763700000067,
  ListEsimPlans1763700000070,
  RestrictApiKeys1763700000080,
  OptIntoEvents1763700000081,
  ControlEsims1763700000082,
  CreateRefundRequests1763700000083,
  TopUpAutomatically1763700000084,
  DateFirstFailures1763700000085,
  RollUpActivity1763700000086,
  ResolveAlerts1763700000087,
  SearchAcrossPartners1763700000088,
  CreateInstallLinks1763700000089,
  ShowAttemptPhases1763700000090,
];
