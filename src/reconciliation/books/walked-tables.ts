/** Rows of a table behind `after`, up to and with `upTo`, in the order of its key. */
export interface KeyRange {
  readonly after: string;
  readonly upTo: string;
  /** Between which times the orders or top-ups of the range ended; null: none has, or the table has no such time. */
  readonly firstEndAt: Date | null;
  readonly lastEndAt: Date | null;
}

/** How a table is read in steps. */
export interface WalkedTable {
  /** Before every key. */
  readonly first: string;
  /**
   * Takes the last key that was read ($1) and how many rows follow ($2). Answers `last`, the last of their keys, `read`,
   * how many they are, and of orders and top-ups the times between which they ended.
   */
  readonly nextRange: string;
}

/** The tables of our books, each in the order of its primary key. */
export const WALKED_TABLES = {
  wallets: {
    first: '0',
    nextRange: `SELECT max(id)::text AS last, count(*)::int AS read
      FROM (SELECT id FROM wallets WHERE id > $1::bigint ORDER BY id LIMIT $2::int) AS page`,
  },
  holds: {
    first: '0',
    nextRange: `SELECT max(id)::text AS last, count(*)::int AS read
      FROM (SELECT id FROM wallet_holds WHERE id > $1::bigint ORDER BY id LIMIT $2::int) AS page`,
  },
  transactions: {
    first: '',
    nextRange: `SELECT max(id) AS last, count(*)::int AS read
      FROM (SELECT id FROM ledger_transactions WHERE id > $1 ORDER BY id LIMIT $2::int) AS page`,
  },
  entries: {
    first: '',
    // Whole transactions: what is cut between two entries of one would not sum up to 0.
    nextRange: `SELECT max(transaction_id) AS last, count(*)::int AS read
      FROM (SELECT transaction_id FROM ledger_entries WHERE transaction_id > $1
            ORDER BY transaction_id FETCH FIRST ($2::int) ROWS WITH TIES) AS page`,
  },
  orders: {
    first: '',
    nextRange: `SELECT max(id) AS last, count(*)::int AS read, min(ended_at) AS first_end_at, max(ended_at) AS last_end_at
      FROM (SELECT id, coalesce(issued_at, failed_at) AS ended_at FROM orders WHERE id > $1
            ORDER BY id LIMIT $2::int) AS page`,
  },
  topups: {
    first: '',
    nextRange: `SELECT max(id) AS last, count(*)::int AS read, min(ended_at) AS first_end_at, max(ended_at) AS last_end_at
      FROM (SELECT id, coalesce(completed_at, failed_at) AS ended_at FROM topups WHERE id > $1
            ORDER BY id LIMIT $2::int) AS page`,
  },
  esims: {
    first: '',
    nextRange: `SELECT max(id) AS last, count(*)::int AS read
      FROM (SELECT id FROM esims WHERE id > $1 ORDER BY id LIMIT $2::int) AS page`,
  },
  events: {
    first: '',
    nextRange: `SELECT max(id) AS last, count(*)::int AS read
      FROM (SELECT id FROM events WHERE id > $1 ORDER BY id LIMIT $2::int) AS page`,
  },
} as const satisfies Readonly<Record<string, WalkedTable>>;

export type TableName = keyof typeof WALKED_TABLES;
