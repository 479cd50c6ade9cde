/** A table's rows after `after`, up to and including `upTo`, in key order. */
export interface KeyRange {
  readonly after: string;
  readonly upTo: string;
  /**
   * First and last end times of the range's orders or top-ups; null when none has ended, or the table has no end times.
   */
  readonly firstEndAt: Date | null;
  readonly lastEndAt: Date | null;
}

/** How to read a table in steps. */
export interface WalkedTable {
  /** Sorts before every key. */
  readonly first: string;
  /**
   * Parameters: the last key read ($1) and the number of rows to read ($2). Returns `last` (the last key), `read` (the
   * number of rows) and, for orders and top-ups, their first and last end times.
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

/** The tables of our books, each in primary-key order. */
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
    // Read whole transactions: a transaction cut between its entries would not sum up to 0.
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
