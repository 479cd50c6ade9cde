/**
 * Compares all books: wallets, ledger, orders, top-ups, eSIMs and events with each other, and with the providers' (D27).
 * Tables: reconciliation_runs and reconciliation_differences; every other table is only read.
 * Called by `npm run reconcile` and by the worker once in `RECONCILE_INTERVAL_MS`.
 * Flow: Reconcile, CheckBooks (an SQL statement per rule, books/), CompareProviders (providers/), then the report or
 * RunReconciliation, which stores the differences and alerts support.
 */
export { BOOK_CHECKS } from './books/check-books.js';
export type { BookCheck, Difference } from './difference.js';
export { Reconcile, type ReconciliationReport } from './reconcile.js';
export { ReconciliationModule, ReconciliationWorkerModule } from './reconciliation.module.js';
export { countUnanswered, renderReport } from './render-report.js';
