import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import type { Difference } from '../difference.js';
import { BOOK_CHECKS } from './book-checks.js';
import { type BookCounts, BooksRepository } from './books.repository.js';

/** A rule that is broken everywhere must not fill the memory. */
const MAX_PER_CHECK = 1_000;

export interface CheckedBooks {
  /** Checks that were run. */
  readonly checks: number;
  readonly counts: BookCounts;
  readonly differences: readonly Difference[];
  /** Checks that found more than is listed. */
  readonly cut: readonly string[];
}

/** Compares wallets, ledger, orders, top-ups, eSIMs and events with each other (D27). */
@Injectable()
export class CheckBooks {
  constructor(
    private readonly books: BooksRepository,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'provisioning'>,
  ) {}

  async execute(): Promise<CheckedBooks> {
    const differences: Difference[] = [];
    const cut: string[] = [];
    for (const each of BOOK_CHECKS) {
      const { check, severity, what, advice } = each;
      const breaches = await this.books.listBreaches(each, this.config.provisioning, MAX_PER_CHECK);
      differences.push(...breaches.map((breach) => ({ check, severity, what, advice, ...breach })));
      if (breaches.length === MAX_PER_CHECK) cut.push(check);
    }
    return { checks: BOOK_CHECKS.length, counts: await this.books.count(), differences, cut };
  }
}
