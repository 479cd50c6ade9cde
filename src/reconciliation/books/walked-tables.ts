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

function nextById(table: string, key: 'text' | 'bigint' = 'text'): string {
  return `SELECT max(id)::text AS last, count(*)::int AS read
    FROM (SELECT id FROM ${table} WHERE id > $1::${key} ORDER BY id LIMIT $2::int) AS page`;
}

function nextEnded(table: 'orders' | 'topups', endedAt: string): string {
  return `SELECT max(id) AS last, count(*)::int AS read, min(ended_at) AS first_end_at, max(ended_at) AS last_end_at
    FROM (SELECT id, ${endedAt} AS ended_at FROM ${table} WHERE id > $1 ORDER BY id LIMIT $2::int) AS page`;
}

/** The tables of our books, each in the order of its primary key. */
export const WALKED_TABLES = {
  wallets: {
    first: '0',
    nextRange: nextById('wallets', 'bigint'),
  },
  holds: {
    first: '0',
    nextRange: nextById('wallet_holds', 'bigint'),
  },
  transactions: {
    first: '',
    nextRange: nextById('ledger_transactions'),
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
    nextRange: nextEnded('orders', 'coalesce(issued_at, failed_at)'),
  },
  topups: {
    first: '',
    nextRange: nextEnded('topups', 'coalesce(completed_at, failed_at)'),
  },
  esims: {
    first: '',
    nextRange: nextById('esims'),
  },
  events: {
    first: '',
    nextRange: nextById('events'),
  },
} as const satisfies Readonly<Record<string, WalkedTable>>;

export type TableName = keyof typeof WALKED_TABLES;
