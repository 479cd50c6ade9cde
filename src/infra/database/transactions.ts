import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { isTransientConflict } from './database-errors.js';
import { applyTransactionLimits } from './pooled-sessions.js';

/** An open transaction. Use cases receive it and pass it on: there is no ambient transaction. */
export interface Tx {
  readonly manager: EntityManager;
  /** Runs after the commit, never after a rollback. For hints only: the process may die before it runs. */
  afterCommit(action: () => void): void;
}

const MAX_ATTEMPTS = 4;

/** Owns transaction boundaries. Deadlocks and serialization failures are run again up to three times (D40). */
@Injectable()
export class Transactions {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Runs `work` in one READ COMMITTED transaction; it may run several times, so it must have no other effect. */
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
    const actions: (() => void)[] = [];
    const result = await this.dataSource.transaction(async (manager) => {
      await applyTransactionLimits(manager);
      return work({ manager, afterCommit: (action) => actions.push(action) });
    });
    for (const action of actions) action();
    return result;
  }
}

/**
 * Runs `work` behind a savepoint of `tx`. When it throws, its rows and its after-commit actions are gone and
 * the transaction goes on (D16).
 */
export async function withSavepoint<T>(tx: Tx, work: (inner: Tx) => Promise<T>): Promise<T> {
  const actions: (() => void)[] = [];
  await tx.manager.query('SAVEPOINT attempt');
  let result: T;
  try {
    result = await work({ manager: tx.manager, afterCommit: (action) => actions.push(action) });
  } catch (error) {
    await tx.manager.query('ROLLBACK TO SAVEPOINT attempt');
    throw error;
  }
  for (const action of actions) tx.afterCommit(action);
  return result;
}
