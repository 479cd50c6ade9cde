import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import type { Part, PartProgress, Step } from '../steps.js';
import type { BookCheck, BookSettings, BookWalk } from './book-check.js';
import { BooksRepository } from './books.repository.js';
import { EVENT_CHECKS } from './event-checks.js';
import { LEDGER_CHECKS } from './ledger-checks.js';
import { ORDER_CHECKS } from './order-checks.js';
import { RECORD_CHECKS, STUCK_CHECKS } from './record-checks.js';
import { TOPUP_CHECKS } from './topup-checks.js';
import { type TableName, WALKED_TABLES } from './walked-tables.js';

/** Every invariant of our own books, in report order. */
export const BOOK_CHECKS: readonly BookCheck[] = [
  ...LEDGER_CHECKS,
  ...ORDER_CHECKS,
  ...TOPUP_CHECKS,
  ...RECORD_CHECKS,
  ...EVENT_CHECKS,
  ...STUCK_CHECKS,
];

/** Ends the walk of a rule that is violated everywhere, before it fills memory or disk. */
export const MAX_PER_WALK = 1_000;
/** Ratio of rows read locally to orders queried from a provider in the same time. */
const ROWS_PER_SUBJECT = 10;
const TABLES = Object.keys(WALKED_TABLES) as TableName[];

/**
 * Compares wallets, ledger, orders, top-ups, eSIMs and events with each other, and counts them (D27). Each check walks
 * a table in steps small enough to be fast.
 */
@Injectable()
export class CheckBooks {
  private readonly settings: BookSettings;
  private readonly rowsPerStep: number;

  constructor(
    private readonly books: BooksRepository,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning' | 'retention' | 'reconcilePageSize'>,
  ) {
    const { provisioning, retention, reconcilePageSize } = config;
    this.settings = { needsReviewAfterMs: provisioning.needsReviewAfterMs, retention };
    this.rowsPerStep = reconcilePageSize * ROWS_PER_SUBJECT;
  }

  parts(): readonly Part[] {
    const checks = BOOK_CHECKS.flatMap((check) =>
      check.walks.map((each) => ({
        name: `${check.check}:${each.table}`,
        step: (cursor: string, progress: PartProgress) => this.check(check, each, cursor, progress),
      })),
    );
    const counts = TABLES.map((table) => ({
      name: `count:${table}`,
      counts: table,
      step: (cursor: string) => this.count(table, cursor),
    }));
    return [...checks, ...counts];
  }

  private async check(
    { check, severity, what, advice }: BookCheck,
    bookWalk: BookWalk,
    cursor: string,
    { differences: found }: PartProgress,
  ): Promise<Step> {
    const next = await this.books.nextRange(bookWalk.table, cursor, this.rowsPerStep);
    if (!next) return { cursor: null, rowsRead: 0, differences: [], unanswered: [] };
    const limit = MAX_PER_WALK - found;
    const breaches = await this.books.listBreaches(bookWalk, next.range, this.settings, limit);
    const isEnd = next.read < this.rowsPerStep || breaches.length === limit;
    return {
      cursor: isEnd ? null : next.range.upTo,
      rowsRead: next.read,
      differences: breaches.map((breach) => ({ check, severity, what, advice, ...breach })),
      unanswered: [],
    };
  }

  private async count(table: TableName, cursor: string): Promise<Step> {
    const next = await this.books.nextRange(table, cursor, this.rowsPerStep);
    const isEnd = !next || next.read < this.rowsPerStep;
    return {
      cursor: isEnd ? null : next.range.upTo,
      rowsRead: next?.read ?? 0,
      differences: [],
      unanswered: [],
    };
  }
}
