import type { EntityManager, ValueTransformer } from 'typeorm';
import type { Tx } from './transactions.js';

export type SqlParameter = string | number | boolean | Date | Buffer | null | readonly SqlParameter[];

export interface SqlResult<Row> {
  readonly rows: Row[];
  /** Rows touched by INSERT, UPDATE or DELETE. */
  readonly affected: number;
}

/**
 * Runs hand-written SQL on the manager's own connection (its transaction, if it has one).
 * `EntityManager.query` would return one of three shapes, by the command.
 */
export async function sql<Row = Record<string, unknown>>(
  manager: EntityManager,
  text: string,
  parameters: readonly SqlParameter[] = [],
): Promise<SqlResult<Row>> {
  const own = manager.queryRunner;
  const runner = own ?? manager.dataSource.createQueryRunner();
  try {
    const result = await runner.query(text, parameters as unknown[], true);
    return { rows: (result.records as Row[] | undefined) ?? [], affected: result.affected ?? 0 };
  } finally {
    if (!own) await runner.release();
  }
}

/** `bigint` columns arrive as text. @throws RangeError outside the safe integers. */
export function toSafeInteger(value: string | number): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError('bigint column outside the safe integers');
  return number;
}

/** As `toSafeInteger`, for nullable columns. */
export function toSafeIntegerOrNull(value: string | number | null): number | null {
  return value === null ? null : toSafeInteger(value);
}

/** `bigint` columns as numbers. @throws RangeError on reading a value outside the safe integers. */
export const bigintColumn: ValueTransformer = {
  to: (value: number | null | undefined) => value,
  from: (value: string | null) => toSafeIntegerOrNull(value),
};

/** The database's time of this moment, the clock of due times, leases and expiry (D40). */
export async function databaseNow(tx: Tx): Promise<Date> {
  const { rows } = await sql<{ now: Date }>(tx.manager, 'SELECT clock_timestamp() AS now');
  return rows[0]!.now;
}
