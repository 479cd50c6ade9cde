import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { ProvidersModule } from '../providers/index.js';
import { BooksRepository, CheckBooks } from './books/check-books.js';
import { Reconcile } from './reconcile.js';
import { CompareProviders } from './providers/compare-providers.js';
import { ProviderSubjectsRepository } from './providers/provider-subjects.repository.js';
import { ReconciliationJob, ReconciliationMetrics, RunReconciliation } from './worker/run-reconciliation.js';
import { ReconciliationRunsRepository } from './worker/reconciliation-runs.repository.js';

/** Comparing, for `npm run reconcile`. */
@Module({
  imports: [ProvidersModule],
  providers: [BooksRepository, CheckBooks, ProviderSubjectsRepository, CompareProviders, Reconcile],
  exports: [Reconcile],
})
export class ReconciliationModule {}

/** The scheduled job; only the worker role imports it. */
@Module({
  imports: [ReconciliationModule, AlertsModule],
  providers: [ReconciliationRunsRepository, RunReconciliation, ReconciliationJob, ReconciliationMetrics],
})
export class ReconciliationWorkerModule {}
