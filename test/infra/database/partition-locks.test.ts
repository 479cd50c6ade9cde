import type { DataSource, EntityManager } from 'typeorm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDataSource } from '../../../src/infra/database/index.js';
import { lockSession, releaseSession } from '../../../src/infra/partition-locks.js';
import { createTestDatabase, eventually, type TestDatabase } from '../../harness/index.js';

let database: TestDatabase;
let dataSource: DataSource;

beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await createDataSource({
    ...{ url: database.url, poolMax: 1, poolWaitMs: 20_000, entities: [], applicationName: 'test' },
  }).initialize();
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

async function isLockable(): Promise<boolean> {
  const runner = dataSource.createQueryRunner();
  try {
    return await lockSession(runner, 'events');
  } finally {
    await releaseSession(runner, 'events');
  }
}

async function pidOf(manager: EntityManager): Promise<number> {
  const [row] = await manager.query<[{ pid: number }]>('SELECT pg_backend_pid() AS pid');
  return row.pid;
}

it('closes a session that cannot be unlocked, so that it does not return to the pool with the lock', async () => {
  const runner = dataSource.createQueryRunner();
  expect(await lockSession(runner, 'events')).toBe(true);
  const holder = await pidOf(runner.manager);
  await runner.query('BEGIN');
  await expect(runner.query('SELECT 1 / 0')).rejects.toThrow('division by zero');
  await expect(releaseSession(runner, 'events')).rejects.toThrow('transaction is aborted');
  expect(await pidOf(dataSource.manager)).not.toBe(holder);
  await eventually('the lock is free', isLockable);
});
