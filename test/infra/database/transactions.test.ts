import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import {
  createDataSource,
  send,
  sql,
  sqlState,
  Transactions,
  type Tx,
  withSavepoint,
} from '../../../src/infra/database/index.js';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';

const INSERT = 'INSERT INTO written (id) VALUES ($1)';
const UNIQUE_VIOLATION = '23505';

let database: TestDatabase;
let dataSource: DataSource;
let transactions: Transactions;

beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query('CREATE TABLE written (id int PRIMARY KEY)');
  // A single connection, so that leftovers of one transaction affect the next.
  dataSource = await createDataSource({
    url: database.url,
    poolMax: 1,
    poolWaitMs: 20_000,
    entities: [],
    applicationName: 'test',
  }).initialize();
  transactions = new Transactions(dataSource);
});

afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

beforeEach(() => database.pool.query('TRUNCATE written'));

/** The committed rows. */
async function written(): Promise<readonly number[]> {
  const { rows } = await database.pool.query<{ id: number }>('SELECT id FROM written ORDER BY id');
  return rows.map(({ id }) => id);
}

const insert = async ({ manager }: Tx, id: number): Promise<void> => void (await sql(manager, INSERT, [id]));
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

describe('the connection of a transaction', () => {
  it('is released without a transaction, even when the work throws synchronously', async () => {
    const failure = await failureOf(
      transactions.run(() => {
        throw new Error('at once');
      }),
    );
    expect(failure).toEqual(new Error('at once'));
    await sql(dataSource.manager, INSERT, [1]);
    expect(await written()).toEqual([1]);
  });

  it('refuses statements of work that continues after the end', async () => {
    let late: Tx | null = null;
    await transactions.run((tx) => insert((late = tx), 1));
    await expect(insert(late!, 2)).rejects.toThrow('has ended');
    expect(() => send(late!, INSERT, [3])).toThrow('no open transaction');
    expect(await written()).toEqual([1]);
  });

  it('refuses statements that run concurrently with the failed part, even right after the ROLLBACK', async () => {
    let beside: Promise<unknown> = Promise.resolve();
    const failed = transactions.run(async (tx) => {
      await insert(tx, 1);
      // In the event loop turn of the ROLLBACK, which is sent once the failure reaches the transaction.
      beside = failureOf(new Promise((resolve) => setImmediate(resolve)).then(() => insert(tx, 2)));
      throw new Error('this part');
    });
    expect(await failureOf(failed)).toEqual(new Error('this part'));
    expect(await beside).toEqual(new Error('the transaction of this statement has ended'));
    expect(await written()).toEqual([]);
  });

  it.each(['in the turn of the ROLLBACK', 'just before the end'])(
    'refuses a write through TypeORM that is started %s',
    async (when) => {
      let beside: Promise<unknown> = Promise.resolve();
      const failed = transactions.run(async (tx) => {
        await insert(tx, 1);
        const turn = when === 'just before the end' ? null : new Promise((resolve) => setImmediate(resolve));
        const write = (): Promise<unknown> => tx.manager.query(INSERT, [2]);
        beside = failureOf(turn === null ? write() : turn.then(write));
        throw new Error('this part');
      });
      expect(await failureOf(failed)).toEqual(new Error('this part'));
      expect(String(await beside)).toContain('the transaction of this statement has ended');
      expect(await written()).toEqual([]);
    },
  );

  it('ignores a savepoint that fails after the end, during the next transaction', async () => {
    let fail = (): void => undefined;
    let beside: Promise<unknown> = Promise.resolve();
    const failed = transactions.run((tx) => {
      const late = new Promise((_resolve, reject) => (fail = () => reject(new Error('late'))));
      beside = failureOf(withSavepoint(tx, () => late));
      throw new Error('this part');
    });
    expect(await failureOf(failed)).toEqual(new Error('this part'));
    await transactions.run((tx) =>
      withSavepoint(tx, async (inner) => {
        await insert(inner, 1);
        fail();
        expect(await beside).toEqual(new Error('late'));
        await insert(inner, 2);
      }),
    );
    expect(await written()).toEqual([1, 2]);
  });
});

describe('a savepoint rollback (D16)', () => {
  it('undoes the failure of an unawaited statement, and throws that failure', async () => {
    let refusal: unknown = null;
    await transactions.run(async (tx) => {
      await insert(tx, 1);
      refusal = await failureOf(
        withSavepoint(tx, async (inner) => {
          send(inner, INSERT, [1]);
          await insert(inner, 2);
        }),
      );
      await insert(tx, 3);
    });
    expect(sqlState(refusal)).toBe(UNIQUE_VIOLATION);
    expect(await written()).toEqual([1, 3]);
  });

  it('discards the failure of an unawaited statement', async () => {
    await transactions.run(async (tx) => {
      await insert(tx, 1);
      const refusal = await failureOf(
        withSavepoint(tx, (inner) => {
          send(inner, INSERT, [1]);
          return Promise.reject(new Error('refused'));
        }),
      );
      expect(refusal).toEqual(new Error('refused'));
      await insert(tx, 3);
    });
    expect(await written()).toEqual([1, 3]);
  });

  it('returns to its own savepoint, not to a nested one', async () => {
    await transactions.run(async (tx) => {
      await failureOf(
        withSavepoint(tx, async (outer) => {
          await insert(outer, 1);
          await withSavepoint(outer, (inner) => insert(inner, 2));
          throw new Error('refused');
        }),
      );
      await insert(tx, 3);
    });
    expect(await written()).toEqual([3]);
  });

  it('does not undo an earlier failure', async () => {
    const failed = transactions.run(async (tx) => {
      await insert(tx, 1);
      send(tx, INSERT, [1]);
      await failureOf(withSavepoint(tx, (inner) => insert(inner, 2)));
    });
    expect(sqlState(await failureOf(failed))).toBe(UNIQUE_VIOLATION);
    expect(await written()).toEqual([]);
  });
});
