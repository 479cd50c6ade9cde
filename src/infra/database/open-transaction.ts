import type { Writable } from 'node:stream';
import type { PoolClient, QueryResult } from 'pg';
import type { QueryRunner } from 'typeorm';
import { sqlState } from './database-errors.js';
import { bindConnection, type PreparedStatement, type SqlParameter, submit, type Tx } from './sql.js';

const IN_FAILED_TRANSACTION = '25P02';

const openTransactions = new WeakMap<QueryRunner, OpenTransaction>();

/**
 * Sends a statement that nobody waits for, in one write with the statement after it: it costs no round trip. When it
 * fails, so do the statements after it, and `Transactions.run` throws its error.
 * @throws Error outside `Transactions.run`
 */
export function send(
  tx: Tx,
  statement: string | PreparedStatement,
  parameters: readonly SqlParameter[] = [],
): void {
  const transaction = tx.manager.queryRunner && openTransactions.get(tx.manager.queryRunner);
  if (!transaction) throw new Error('a statement is sent in a transaction of `Transactions.run` only');
  transaction.send(statement, parameters);
}

/**
 * One transaction on one connection, in few conversations: BEGIN, savepoints and whatever else nobody reads the answer of
 * go out with the statement after them, COMMIT with the last one. PostgreSQL answers in order, so an error of a
 * statement that was only sent is known at the latest at the commit, which then commits nothing.
 */
export class OpenTransaction {
  private readonly failures: unknown[] = [];
  private unanswered: Promise<unknown>[] = [];

  private constructor(
    private readonly runner: QueryRunner,
    private readonly connection: PoolClient,
  ) {}

  /** Takes a connection of the pool; `runner` is to be released by the caller. */
  static async begin(runner: QueryRunner): Promise<OpenTransaction> {
    const connection = (await runner.connect()) as PoolClient;
    bindConnection(runner, connection);
    // As `startTransaction` leaves it, but for the round trip: TypeORM refuses row locks outside a transaction, and
    // opens one of its own around each write.
    Object.assign(runner, { isTransactionActive: true, transactionDepth: 1 });
    const transaction = new OpenTransaction(runner, connection);
    openTransactions.set(runner, transaction);
    transaction.send('START TRANSACTION');
    return transaction;
  }

  /** Sends a statement without waiting for its answer. */
  send(statement: string | PreparedStatement, parameters: readonly SqlParameter[] = []): void {
    joinWrites(this.connection);
    const answer = submit(this.runner, this.connection, statement, parameters).catch((error: unknown) => {
      this.failures.push(error);
    });
    this.unanswered.push(answer);
  }

  /** Commits what `work` did, or rolls back and throws what it threw. */
  async end<T>(work: Promise<T>): Promise<T> {
    try {
      const result = await work;
      await this.commit();
      return result;
    } catch (error) {
      await this.rollBack();
      throw this.causeOf(error);
    } finally {
      Object.assign(this.runner, { isTransactionActive: false, transactionDepth: 0 });
    }
  }

  private async commit(): Promise<void> {
    const committed: Promise<QueryResult> = this.connection.query('COMMIT');
    const [{ command }] = await Promise.all([committed, ...this.unanswered]);
    if (this.failures.length > 0) throw this.failures[0];
    // PostgreSQL answers ROLLBACK to the COMMIT of a failed transaction, and no error.
    if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`);
  }

  private async rollBack(): Promise<void> {
    // A connection that is gone has rolled back.
    await this.connection.query('ROLLBACK').catch(() => undefined);
    await Promise.all(this.unanswered);
  }

  /** What failed before made the rest of the transaction fail. */
  private causeOf(error: unknown): unknown {
    return sqlState(error) === IN_FAILED_TRANSACTION ? (this.failures[0] ?? error) : error;
  }
}

/** What is written in this turn of the event loop becomes one write to the socket: each costs more than a statement. */
export function joinWrites(connection: PoolClient): void {
  const { stream } = (connection as unknown as { readonly connection: { readonly stream: Writable } })
    .connection;
  stream.cork();
  process.nextTick(() => stream.uncork());
}
