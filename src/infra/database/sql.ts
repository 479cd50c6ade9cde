import { createHash } from 'node:crypto';
import type { PoolClient, QueryResult, QueryResultRow } from 'pg';
import { type EntityManager, QueryFailedError, type QueryRunner, type ValueTransformer } from 'typeorm';

/** An open transaction. Use cases receive it and pass it on: there is no ambient transaction. */
export interface Tx {
  readonly manager: EntityManager;
  /**
   * Runs `action` after the commit, or `otherwise` when the commit fails or everything is rolled back. For hints only:
   * the process may die first, and a commit whose response was lost counts as failed.
   */
  afterCommit(action: () => void, otherwise?: () => void): void;
}

export type SqlParameter = string | number | boolean | Date | Buffer | null | readonly SqlParameter[];

export interface SqlResult<Row> {
  readonly rows: Row[];
  /** Rows touched by INSERT, UPDATE or DELETE. */
  readonly affected: number;
}

/** A statement that each connection parses once and plans a few times; PostgreSQL identifies it by its name. */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
}

/** SQL for the start time of the statement by the database's clock (D40). */
export const NOW = 'statement_timestamp()';

/**
 * Prepares `text` on each connection that runs it. For constant texts that run often, because a connection keeps them
 * until it closes. `DATABASE_PREPARED=off` sends the text each time instead.
 */
export function prepared(text: string): PreparedStatement {
  // PostgreSQL truncates names to 63 bytes.
  return { name: `s_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`, text };
}

/**
 * The connection of each transaction. A statement is sent in the event-loop turn that issues it, so statements keep
 * their order. Null once the transaction has ended, because the connection then belongs to another one.
 */
const connections = new WeakMap<QueryRunner, PoolClient | null>();

/** Sets the connection for the statements of `runner`; null refuses them. */
export function bindConnection(runner: QueryRunner, connection: PoolClient | null): void {
  connections.set(runner, connection);
}

export const transactionHasEnded = (): Error => new Error('the transaction of this statement has ended');

/**
 * Runs hand-written SQL on the manager's own connection (its transaction, if it has one). `EntityManager.query` would
 * return one of three shapes, depending on the command, and costs more than most statements.
 * @throws QueryFailedError; Error when the manager's transaction has ended, because none of its statements may run
 * outside it
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

/** Sends one statement after those still unanswered on the runner's connection. @throws QueryFailedError */
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

/** Converts a `bigint` column, which arrives as text. @throws RangeError outside the safe integers */
export function toSafeInteger(value: string | number): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError('bigint column outside the safe integers');
  return number;
}

/** Like `toSafeInteger`, for nullable columns. */
export function toSafeIntegerOrNull(value: string | number | null): number | null {
  return value === null ? null : toSafeInteger(value);
}

/** `bigint` columns as numbers. @throws RangeError when reading a value outside the safe integers */
export const bigintColumn: ValueTransformer = {
  to: (value: number | null | undefined) => value,
  from: (value: string | null) => toSafeIntegerOrNull(value),
};

/** The database's current time, which is the clock of due times, leases and expiry. */
export async function databaseNow(tx: Tx): Promise<Date> {
  const { rows } = await sql<{ now: Date }>(tx.manager, 'SELECT clock_timestamp() AS now');
  return rows[0]!.now;
}
