/**
 * Compares all books: wallets, ledger, orders, top-ups, eSIMs and events with each other, and with the providers'
 * (D27).
 * Tables: reconciliation_runs, reconciliation_cursors and reconciliation_differences; every other table is read-only
 * here.
 * Callers: `npm run reconcile`, and the worker once per `RECONCILE_INTERVAL_MS`.
 * Flow: Reconcile walks parts (steps.ts) in independent steps. CheckBooks has a part per rule and table (books/),
 * CompareProviders one for the orders and top-ups of each provider (providers/). A journal stores a step's findings and
 * the cursor: ReportBooks in memory for the command, RunReconciliation in a run that another worker may take over
 * (worker/), which alerts support.
 */
export { BOOK_CHECKS } from './books/check-books.js';
export { WALKED_TABLES } from './books/walked-tables.js';
export type { BookCheck, BookSettings } from './books/book-check.js';
export type { Difference } from './difference.js';
export { ReportBooks, type ReconciliationReport } from './report.js';
export { ReconciliationModule, ReconciliationWorkerModule } from './reconciliation.module.js';
export { ProviderNotAnswering, RetryingProviderClient } from './providers/retrying-provider-client.js';
export { countUnanswered, renderReport } from './render-report.js';
