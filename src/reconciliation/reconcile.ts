import { Injectable } from '@nestjs/common';
import { CheckBooks } from './books/check-books.js';
import { CompareProviders } from './providers/compare-providers.js';
import { type Journal, walk, walkAtOnce } from './steps.js';

export interface ReconcileCommand {
  /** The providers are asked about what changed at or after this; null: they are not asked. */
  readonly since: Date | null;
  /** Keeps what is found, and knows from where to go on. */
  readonly journal: Journal;
  readonly stopping: AbortSignal;
}

/**
 * Compares all books with each other: wallets, ledger, orders, eSIMs, top-ups, events and the providers (D27), in steps
 * that the journal keeps. Only reads, and may run while the service works.
 */
@Injectable()
export class Reconcile {
  constructor(
    private readonly books: CheckBooks,
    private readonly providers: CompareProviders,
  ) {}

  /** @throws Error of the database; whatever `stopping` was aborted with */
  async execute({ since, journal, stopping }: ReconcileCommand): Promise<void> {
    await walk(this.books.parts(), journal, stopping);
    if (since) await walkAtOnce(this.providers.partsByProvider(since), journal, stopping);
  }
}
