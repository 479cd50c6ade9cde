/**
 * Top-ups: a partner adds data or days to an eSIM (spec section 5, D19, D22, D24). The twin of `orders/`.
 * Owns the table `topups`; locks rows of `orders`, so that a top-up and a cancellation exclude each other.
 * Callers: partners (`/v1/topups`), the worker, `support/` (inspects and resolves), `esim-sync/` (makes top-ups due).
 * Flow: PlaceTopup (row and hold) -> TopupWorker (claim) -> FulfillTopup (FindOrPlace at the provider, then
 * PurchaseEnds, many in one transaction) -> CompleteTopup (eSIM, money, event).
 */
export { TopupsQueryDto, toTopupFilters } from './api/topup-requests.dto.js';
export { TopupResponse, toTopupResponse } from './api/topup.response.js';
export { type AppliedTopup, CompleteTopup } from './complete-topup.js';
export { TOPUP_STATUSES, TopupEntity, type TopupStatus, toProviderTopupRequest } from './topup.js';
export { TOPUP_JOBS, TopupJobsRepository } from './topup-jobs.repository.js';
export { TopupsApiModule, TopupsModule, TopupsPortalModule, TopupsWorkerModule } from './topups.module.js';
export { TopupsRepository } from './topups.repository.js';
