import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { isTransientConflict } from './database-errors.js';
import { OpenTransaction, openTransactionOf, send } from './open-transaction.js';
import { prepared, type Tx } from './sql.js';
import { preludeOf } from './pooled-sessions.js';

type EndActions = Parameters<Tx['afterCommit']>;

const MAX_ATTEMPTS = 4;

const LIMIT_LOCK_WAIT = prepared(`SELECT set_config('lock_timeout', $1, true)`);

/** Owns transaction boundaries. Deadlocks and serialization failures are retried up to three times (D40). */
@Injectable()
export class Transactions {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Runs `work` in one READ COMMITTED transaction. It may run several times, so it must have no other effect. */
  async run<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.runOnce(work);
      } catch (error) {
        if (attempt >= MAX_ATTEMPTS || !isTransientConflict(error)) throw error;
      }
    }
  }

  private async runOnce<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const runner = this.dataSource.createQueryRunner();
    const actions: EndActions[] = [];
    let result: T;
    try {
      const transaction = await OpenTransaction.begin(runner);
      const prelude = preludeOf(this.dataSource);
      if (prelude) transaction.send(...prelude);
      const tx: Tx = { manager: runner.manager, afterCommit: (...action) => actions.push(action) };
      result = await transaction.end(() => work(tx));
    } catch (error) {
      for (const [, otherwise] of actions) otherwise?.();
      throw error;
    } finally {
      await runner.release();
    }
    for (const [action] of actions) action();
    return result;
  }
}

/**
 * Limits lock waits of `tx` to this many milliseconds from now on, at least one, so that the failing part can be
 * retried separately.
 */
export function limitLockWait(tx: Tx, ms: number): void {
  send(tx, LIMIT_LOCK_WAIT, [String(Math.max(1, Math.ceil(ms)))]);
}

/**
 * A FROM item with one row. The commit of its transaction, which may consist of this statement alone, does not wait for
 * the disk (D61). For work that may be repeated if a crash loses it.
 */
export const COMMIT_WITHOUT_DISK = `set_config('synchronous_commit', 'off', true)`;

/** Same as `COMMIT_WITHOUT_DISK`, but only if the SQL expression `mode` is Sandbox, where nothing is bought. */
export function commitSandboxWithoutDisk(mode: string): string {
  return `set_config('synchronous_commit', CASE ${mode} WHEN 'sandbox' THEN 'off' ELSE current_setting('synchronous_commit') END, true)`;
}

/**
 * Runs `work` behind a savepoint of `tx`. If it throws, its rows and after-commit actions are discarded, and the
 * transaction continues (D16). A statement that `work` sends without awaiting it may fail later, and then fails the
 * transaction.
 */
export async function withSavepoint<T>(tx: Tx, work: (inner: Tx) => Promise<T>): Promise<T> {
  const actions: EndActions[] = [];
  const inner: Tx = { manager: tx.manager, afterCommit: (...action) => actions.push(action) };
  try {
    const result = await openTransactionOf(tx).behindSavepoint(() => work(inner));
    for (const action of actions) tx.afterCommit(...action);
    return result;
  } catch (error) {
    for (const [, otherwise] of actions) otherwise?.();
    throw error;
  }
}
