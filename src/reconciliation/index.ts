export { BOOK_CHECKS } from './books/book-checks.js';
export { type BookCheck } from './books/book-check.js';
export { type Difference } from './difference.js';
export { Reconcile, type ReconciliationReport } from './reconcile.js';
export { ReconciliationModule, ReconciliationWorkerModule } from './reconciliation.module.js';
export { countUnanswered, renderReport } from './render-report.js';
