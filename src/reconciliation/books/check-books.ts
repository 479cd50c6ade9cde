import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { sql } from '../../infra/database/index.js';
import type { BookBreach, BookCheck, BookSettings, Difference } from '../difference.js';
import { LEDGER_CHECKS } from './ledger-checks.js';
import { ORDER_CHECKS } from './order-checks.js';
import { RECORD_CHECKS } from './record-checks.js';
import { TOPUP_CHECKS } from './topup-checks.js';

/** Every invariant of our own books, in the order in which they are reported. */
export const BOOK_CHECKS: readonly BookCheck[] = [
  ...LEDGER_CHECKS,
  ...ORDER_CHECKS,
  ...TOPUP_CHECKS,
  ...RECORD_CHECKS,
];

/** What the checks looked at, by the plural of the thing. */
export type BookCounts = Readonly<Record<string, number>>;

const COUNTS = `
  SELECT (SELECT count(*) FROM wallets)::int AS wallets,
         (SELECT count(*) FROM wallet_holds)::int AS holds,
         (SELECT count(*) FROM ledger_transactions)::int AS transactions,
         (SELECT count(*) FROM ledger_entries)::int AS entries,
         (SELECT count(*) FROM orders)::int AS orders,
         (SELECT count(*) FROM topups)::int AS topups,
         (SELECT count(*) FROM esims)::int AS esims,
         (SELECT count(*) FROM events)::int AS events`;

/** Runs the invariants. Only reads. */
@Injectable()
export class BooksRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'statementTimeouts'>,
  ) {}

  /** Up to `limit` rows that break the invariant. */
  async listBreaches(
    check: BookCheck,
    settings: BookSettings,
    limit: number,
  ): Promise<readonly BookBreach[]> {
    const parameters = check.parameters?.(settings) ?? [];
    return this.patiently((manager) =>
      sql<BookBreach>(
        manager,
        `SELECT subject, expected, found FROM (${check.query}) AS breach LIMIT ${limit}`,
        parameters,
      ),
    );
  }

  async count(): Promise<BookCounts> {
    const [counts] = await this.patiently((manager) => sql<Record<string, number>>(manager, COUNTS));
    return counts!;
  }

  /** A check reads whole tables: it may take longer than the other statements of a worker (D43). */
  private async patiently<Row>(read: (manager: EntityManager) => Promise<{ rows: Row[] }>): Promise<Row[]> {
    const { reconcileMs } = this.config.statementTimeouts;
    return this.manager.transaction(async (manager) => {
      await sql(manager, `SELECT set_config('statement_timeout', $1, true)`, [String(reconcileMs)]);
      return (await read(manager)).rows;
    });
  }
}

/** A rule that is broken everywhere must not fill the memory. */
const MAX_PER_CHECK = 1_000;

interface CheckedBooks {
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
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'provisioning' | 'retention'>,
  ) {}

  async execute(): Promise<CheckedBooks> {
    const differences: Difference[] = [];
    const cut: string[] = [];
    const { provisioning, retention } = this.config;
    const settings = { needsReviewAfterMs: provisioning.needsReviewAfterMs, retention };
    for (const each of BOOK_CHECKS) {
      const { check, severity, what, advice } = each;
      const breaches = await this.books.listBreaches(each, settings, MAX_PER_CHECK);
      differences.push(...breaches.map((breach) => ({ check, severity, what, advice, ...breach })));
      if (breaches.length === MAX_PER_CHECK) cut.push(check);
    }
    return { checks: BOOK_CHECKS.length, counts: await this.books.count(), differences, cut };
  }
}
