import { Injectable } from '@nestjs/common';
import { databaseNow, Transactions } from '../infra/database/index.js';
import { type BookCounts, CheckBooks } from './books/check-books.js';
import type { Difference } from './difference.js';
import { type ComparedProvider, CompareProviders } from './providers/compare-providers.js';

export interface ReconcileCommand {
  /** The providers are asked about what changed in this time before now; null: they are not asked. */
  readonly providerWindowMs: number | null;
  readonly stopping: AbortSignal;
}

export interface ReconciliationReport {
  readonly startedAt: Date;
  readonly durationMs: number;
  /** What the providers were asked about changed at or after this; null: they were not asked. */
  readonly since: Date | null;
  readonly checks: number;
  readonly checked: BookCounts;
  readonly upstreams: readonly Omit<ComparedProvider, 'differences'>[];
  readonly differences: readonly Difference[];
  /** Checks that found more than is listed. */
  readonly cut: readonly string[];
}

/**
 * Compares all books with each other: wallets, ledger, orders, eSIMs, top-ups, events and the providers (D27).
 * Only reads, and may run while the service works.
 */
@Injectable()
export class Reconcile {
  constructor(
    private readonly transactions: Transactions,
    private readonly books: CheckBooks,
    private readonly providers: CompareProviders,
  ) {}

  /** @throws Error of the database; whatever `stopping` was aborted with */
  async execute({ providerWindowMs, stopping }: ReconcileCommand): Promise<ReconciliationReport> {
    const startedMs = performance.now();
    const startedAt = await this.transactions.run(databaseNow);
    const { checks, counts, differences, cut } = await this.books.execute();
    const since = providerWindowMs === null ? null : new Date(startedAt.getTime() - providerWindowMs);
    const compared = since === null ? [] : await this.providers.execute(since, stopping);
    return {
      startedAt,
      durationMs: Math.round(performance.now() - startedMs),
      since,
      checks,
      checked: counts,
      upstreams: compared.map(({ differences: _differences, ...rest }) => rest),
      differences: [...differences, ...compared.flatMap((each) => each.differences)],
      cut,
    };
  }
}
