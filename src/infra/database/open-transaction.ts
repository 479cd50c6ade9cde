import type { PoolClient, QueryResult } from 'pg';
import type { QueryRunner } from 'typeorm';
import type { DatabaseClient } from './database-client.js';
import { sqlState } from './database-errors.js';
import {
  bindConnection,
  type PreparedStatement,
  type SqlParameter,
  submit,
  transactionHasEnded,
  type Tx,
} from './sql.js';

const IN_FAILED_TRANSACTION = '25P02';

const openTransactions = new WeakMap<QueryRunner, OpenTransaction>();

/**
 * Sends a statement without waiting for its response. It shares one socket write with the next statement, so it costs
 * no round trip. If it fails, the statements after it fail too, and `Transactions.run` throws its error.
 * @throws Error outside `Transactions.run`, and when the transaction has ended
 */
export function send(
  tx: Tx,
  statement: string | PreparedStatement,
  parameters: readonly SqlParameter[] = [],
): void {
  openTransactionOf(tx).send(statement, parameters);
}

/** @throws Error outside `Transactions.run`, and when the transaction has ended */
export function openTransactionOf({ manager }: Tx): OpenTransaction {
  const transaction = manager.queryRunner && openTransactions.get(manager.queryRunner);
  if (!transaction) throw new Error('there is no open transaction of `Transactions.run`');
  return transaction;
}

/** A statement whose response is not awaited. */
interface SentStatement {
  readonly answer: Promise<void>;
  /** Set once PostgreSQL has rejected it. */
  failure: { readonly error: unknown } | null;
}

/**
 * One transaction on one connection in few round trips. BEGIN, savepoints and other statements whose response is not
 * read are sent together with the next statement. COMMIT is sent together with the last one. PostgreSQL responds in
 * order, so the error of an unawaited statement is known at the commit at the latest, which then commits nothing.
 */
export class OpenTransaction {
  /** In sending order, which is the order of the responses. Statements undone by a savepoint are removed. */
  private sent: SentStatement[] = [];
  private savepoints = 0;
  private hasEnded = false;

  private constructor(
    private readonly runner: QueryRunner,
    private readonly connection: PoolClient,
  ) {}

  /** Takes a connection from the pool; the caller releases `runner`. */
  static async begin(runner: QueryRunner): Promise<OpenTransaction> {
    const connection = (await runner.connect()) as PoolClient;
    bindConnection(runner, connection);
    // Same state as after `startTransaction`, without the round trip: TypeORM refuses row locks outside a transaction,
    // and opens its own around each write.
    Object.assign(runner, { isTransactionActive: true, transactionDepth: 1 });
    const transaction = new OpenTransaction(runner, connection);
    transaction.guardTypeOrm();
    openTransactions.set(runner, transaction);
    transaction.send('START TRANSACTION');
    return transaction;
  }

  /** Sends a statement without waiting for its response. @throws Error when the transaction has ended */
  send(statement: string | PreparedStatement, parameters: readonly SqlParameter[] = []): void {
    if (this.hasEnded) throw transactionHasEnded();
    (this.connection as unknown as DatabaseClient).joinWrites();
    const answered = submit(this.runner, this.connection, statement, parameters);
    const one: SentStatement = {
      answer: answered.then(
        () => undefined,
        (error: unknown) => void (one.failure = { error }),
      ),
      failure: null,
    };
    this.sent.push(one);
  }

  /** Commits the work, or rolls back and rethrows its error. Nothing is sent after that. */
  async end<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      this.refuseMore();
      await this.commit();
      return result;
    } catch (error) {
      this.refuseMore();
      await this.rollBack();
      throw this.causeOf(error);
    } finally {
      const databaseConnection = this.connection;
      Object.assign(this.runner, { isTransactionActive: false, transactionDepth: 0, databaseConnection });
    }
  }

  /**
   * Runs `work` behind a savepoint. If it throws, its rows and the failures of its unawaited statements are discarded.
   * Rethrows the original error, not that of a statement that failed because of it.
   */
  async behindSavepoint<T>(work: () => Promise<T>): Promise<T> {
    // With equal names, the outer work would roll back only to the inner savepoint.
    const name = `attempt_${++this.savepoints}`;
    this.send(`SAVEPOINT ${name}`);
    const kept = this.sent.length;
    try {
      return await work();
    } catch (error) {
      const cause = this.causeOf(error);
      // The connection may already run another transaction that has a savepoint of this name.
      if (this.hasEnded) throw cause;
      this.sent.length = kept;
      this.send(`ROLLBACK TO SAVEPOINT ${name}`);
      throw cause;
    }
  }

  /**
   * Refuses further statements. Work that is still running after another part has failed would otherwise write outside
   * the transaction.
   */
  private refuseMore(): void {
    this.hasEnded = true;
    bindConnection(this.runner, null);
    openTransactions.delete(this.runner);
    this.runner.query = () => Promise.reject(transactionHasEnded());
  }

  /** TypeORM awaits other work before it sends a statement. A statement that it sends after the end is refused. */
  private guardTypeOrm(): void {
    const query = (...statement: Parameters<PoolClient['query']>): unknown =>
      this.hasEnded ? Promise.reject(transactionHasEnded()) : this.connection.query(...statement);
    const databaseConnection = Object.create(this.connection, { query: { value: query } }) as PoolClient;
    Object.assign(this.runner, { databaseConnection });
  }

  private async commit(): Promise<void> {
    const committed: Promise<QueryResult> = this.connection.query('COMMIT');
    const [{ command }] = await Promise.all([committed, ...this.answers()]);
    const failure = this.firstFailure();
    if (failure) throw failure.error;
    // PostgreSQL responds ROLLBACK, and no error, to the COMMIT of a failed transaction.
    if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`);
  }

  private async rollBack(): Promise<void> {
    // If this fails, the connection is lost, and PostgreSQL has rolled back.
    await this.connection.query('ROLLBACK').catch(() => undefined);
    await Promise.all(this.answers());
  }

  /** The first failure, which made the rest of the transaction fail. */
  private causeOf(error: unknown): unknown {
    const failure = sqlState(error) === IN_FAILED_TRANSACTION ? this.firstFailure() : null;
    return failure ? failure.error : error;
  }

  private firstFailure(): SentStatement['failure'] {
    return this.sent.find(({ failure }) => failure !== null)?.failure ?? null;
  }

  private answers(): readonly Promise<void>[] {
    return this.sent.map(({ answer }) => answer);
  }
}
