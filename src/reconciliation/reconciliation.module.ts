import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { ProvidersModule } from '../providers/index.js';
import { BooksRepository } from './books/books.repository.js';
import { CheckBooks } from './books/check-books.js';
import { Reconcile } from './reconcile.js';
import { ReportBooks } from './report.js';
import { CompareProviders } from './providers/compare-providers.js';
import { ProviderSubjectsRepository } from './providers/provider-subjects.repository.js';
import { ReconciliationJob, ReconciliationMetrics } from './worker/reconciliation-job.js';
import { RunReconciliation } from './worker/run-reconciliation.js';
import { ReconciliationRunsRepository } from './worker/reconciliation-runs.repository.js';

/** The comparison for `npm run reconcile`. */
@Module({
  imports: [ProvidersModule],
  providers: [
    BooksRepository,
    CheckBooks,
    ProviderSubjectsRepository,
    CompareProviders,
    Reconcile,
    ReportBooks,
  ],
  exports: [Reconcile, ReportBooks],
})
export class ReconciliationModule {}

/** The scheduled job; only the worker role imports it. */
@Module({
  imports: [ReconciliationModule, AlertsModule],
  providers: [ReconciliationRunsRepository, RunReconciliation, ReconciliationJob, ReconciliationMetrics],
})
export class ReconciliationWorkerModule {}
