import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../../infra/database/index.js';
import type { BookBreach, BookCheck, BookSettings } from './book-check.js';

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
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Up to `limit` rows that break the invariant. */
  async listBreaches(
    check: BookCheck,
    settings: BookSettings,
    limit: number,
  ): Promise<readonly BookBreach[]> {
    const parameters = check.parameters?.(settings) ?? [];
    const { rows } = await sql<BookBreach>(
      this.manager,
      `SELECT subject, expected, found FROM (${check.query}) AS breach LIMIT ${limit}`,
      parameters,
    );
    return rows;
  }

  async count(): Promise<BookCounts> {
    return (await sql<Record<string, number>>(this.manager, COUNTS)).rows[0]!;
  }
}
