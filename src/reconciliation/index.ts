export { BOOK_CHECKS } from './books/check-books.js';
export type { BookCheck, Difference } from './difference.js';
export { Reconcile, type ReconciliationReport } from './reconcile.js';
export { ReconciliationModule, ReconciliationWorkerModule } from './reconciliation.module.js';
export { countUnanswered, renderReport } from './render-report.js';
