import { Injectable } from '@nestjs/common';
import { CheckBooks } from './books/check-books.js';
import { CompareProviders } from './providers/compare-providers.js';
import { type Journal, walk, walkAtOnce } from './steps.js';

export interface ReconcileCommand {
  /** Purchases changed at or after this time are compared with the providers; null: the providers are not queried. */
  readonly since: Date | null;
  /** Stores the findings and the position to continue from. */
  readonly journal: Journal;
  readonly stopping: AbortSignal;
}

/**
 * Compares all books with each other: wallets, ledger, orders, eSIMs, top-ups, events and the providers (D27), in steps
 * that the journal stores. Read-only; may run while the service works.
 */
@Injectable()
export class Reconcile {
  constructor(
    private readonly books: CheckBooks,
    private readonly providers: CompareProviders,
  ) {}

  /** @throws a database error; the abort reason of `stopping` */
  async reconcile({ since, journal, stopping }: ReconcileCommand): Promise<void> {
    await walk(this.books.parts(), journal, stopping);
    if (since) await walkAtOnce(this.providers.partsByProvider(since), journal, stopping);
  }
}
