import { createHash } from 'node:crypto';
import type { PoolClient, QueryResult, QueryResultRow } from 'pg';
import { type EntityManager, QueryFailedError, type QueryRunner, type ValueTransformer } from 'typeorm';

/** An open transaction. Use cases receive it and pass it on: there is no ambient transaction. */
export interface Tx {
  readonly manager: EntityManager;
  /**
   * Runs `action` after the commit, or `otherwise` when it fails or everything is rolled back. For hints only: the
   * process may die before, and a commit whose answer was lost counts as failed.
   */
  afterCommit(action: () => void, otherwise?: () => void): void;
}

export type SqlParameter = string | number | boolean | Date | Buffer | null | readonly SqlParameter[];

export interface SqlResult<Row> {
  readonly rows: Row[];
  /** Rows touched by INSERT, UPDATE or DELETE. */
  readonly affected: number;
}

/** A statement that a connection parses once and plans a few times; PostgreSQL knows it by its name. */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
}

/** SQL: when the statement began, by the clock of the database (D40). */
export const NOW = 'statement_timestamp()';

/**
 * Prepares `text` on each connection that runs it. For constant texts that run often: a connection keeps every one of them
 * until it is closed. `DATABASE_PREPARED=off` sends the text each time instead.
 */
export function prepared(text: string): PreparedStatement {
  // PostgreSQL cuts names at 63 bytes.
  return { name: `s_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`, text };
}

/**
 * The connections of transactions: a statement is sent in the turn of its call, so that calls keep their order. Null once
 * the transaction has ended: then the connection is somebody else's.
 */
const connections = new WeakMap<QueryRunner, PoolClient | null>();

/** Says on which connection the statements of `runner` run from now on; null refuses them. */
export function bindConnection(runner: QueryRunner, connection: PoolClient | null): void {
  connections.set(runner, connection);
}

export const transactionHasEnded = (): Error => new Error('the transaction of this statement has ended');

/**
 * Runs hand-written SQL on the manager's own connection (its transaction, if it has one).
 * `EntityManager.query` would return one of three shapes, by the command, and costs more than most statements.
 * @throws QueryFailedError; Error when the manager's transaction has ended: no statement of it may run outside it
 */
export async function sql<Row extends QueryResultRow = Record<string, unknown>>(
  manager: EntityManager,
  statement: string | PreparedStatement,
  parameters: readonly SqlParameter[] = [],
): Promise<SqlResult<Row>> {
  const own = manager.queryRunner;
  if (own) {
    const bound = connections.get(own);
    if (bound === null) throw transactionHasEnded();
    return submit(own, bound ?? ((await own.connect()) as PoolClient), statement, parameters);
  }
  const runner = manager.dataSource.createQueryRunner();
  try {
    return await submit(runner, (await runner.connect()) as PoolClient, statement, parameters);
  } finally {
    await runner.release();
  }
}

/** Sends one statement behind those that the runner's connection has not answered yet. @throws QueryFailedError */
export async function submit<Row extends QueryResultRow>(
  runner: QueryRunner,
  connection: PoolClient,
  statement: string | PreparedStatement,
  parameters: readonly SqlParameter[] = [],
): Promise<SqlResult<Row>> {
  const { text, name } = typeof statement === 'string' ? { text: statement, name: undefined } : statement;
  const values = parameters as unknown[];
  runner.dataSource.logger.logQuery(text, values, runner);
  try {
    const result: QueryResult<Row> = await connection.query<Row>(
      name === undefined ? { text, values } : { name, text, values },
    );
    return { rows: result.rows, affected: result.rowCount ?? 0 };
  } catch (error) {
    runner.dataSource.logger.logQueryError(error as Error, text, values, runner);
    throw new QueryFailedError(text, values, error as Error);
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
