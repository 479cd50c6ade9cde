import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { type DatabaseClient, isLockTimeout, sql } from './database/index.js';
import { boundsOf, type DailyTable, type Day, dayOf, dayOfPartition } from './partition-days.js';
import { lockSession, releaseSession } from './partition-locks.js';

/** Lock timeout of a step: short enough that the server does not cancel an autovacuum that holds the lock. */
const TRY_MS = 80;
const PAUSE_MS = 20;
const STEP_MS = 60_000;
/** Total time limit, after which the next maintenance continues. */
const TIME_LIMIT_MS = 2_000;

/** A day's partition to be dropped. */
interface OldDay {
  readonly partition: string;
  readonly day: Day;
  readonly stopping: AbortSignal | undefined;
}

/**
 * Detaches and drops a partition and returns whether it is gone. Readers and writers continue in the meantime. Waits
 * briefly for transactions that already use the table. If they take longer, the next maintenance continues.
 * @param direct separate connections, because no transaction may be open around DETACH ... CONCURRENTLY
 */
export async function dropPartition(
  direct: DataSource,
  daily: DailyTable,
  partition: string,
  stopping?: AbortSignal,
): Promise<boolean> {
  const from = dayOfPartition(daily.table, partition)!;
  const day = { from, to: dayOf(from, 1) };
  const runner = direct.createQueryRunner();
  try {
    // A frozen process with the lock would prevent all partition changes, so the server ends its session.
    await sql(runner.manager, `SET idle_session_timeout = '60s'`);
    // Scanning a large day or dropping its files takes longer than a worker's other statements.
    await sql(runner.manager, `SET statement_timeout = ${STEP_MS}`);
    ((await runner.connect()) as DatabaseClient).expectAnswersWithin(STEP_MS);
    if (!(await lockSession(runner, daily.table))) return false;
    return await detachAndDrop(runner, daily, { partition, day, stopping });
  } finally {
    await releaseSession(runner, daily.table);
  }
}

async function detachAndDrop(
  runner: QueryRunner,
  daily: DailyTable,
  { partition, day, stopping }: OldDay,
): Promise<boolean> {
  const { table } = daily;
  const { manager } = runner;
  const state = await partitionState(manager, table, partition);
  if (state === 'gone') return false;
  const isNeeded = async (): Promise<boolean> =>
    (await daily.isNeeded?.(manager, partition, day, stopping)) ?? false;
  if (state === 'attached' && (await isNeeded())) return false;
  await patiently(manager, () => detach(manager, table, partition));
  // Every transaction that could come to need the day has committed by now, and no new one can need it.
  if (await isNeeded()) {
    const [from, to] = boundsOf(daily, day);
    await patiently(manager, () =>
      sql(
        manager,
        `ALTER TABLE ${table} ATTACH PARTITION ${partition} FOR VALUES FROM ('${from}') TO ('${to}')`,
      ),
    );
    return false;
  }
  await patiently(manager, () => sql(manager, `DROP TABLE ${partition}`));
  return true;
}

/** Continues where an earlier attempt, or another process, was interrupted. */
async function detach(manager: EntityManager, table: string, partition: string): Promise<void> {
  const state = await partitionState(manager, table, partition);
  if (state === 'attached')
    await sql(manager, `ALTER TABLE ${table} DETACH PARTITION ${partition} CONCURRENTLY`);
  if (state === 'detaching')
    await sql(manager, `ALTER TABLE ${table} DETACH PARTITION ${partition} FINALIZE`);
}

/** Retries while only a lock is missing. @throws QueryFailedError of the last attempt */
async function patiently(manager: EntityManager, step: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + TIME_LIMIT_MS;
  await sql(manager, `SET lock_timeout = '${TRY_MS}ms'`);
  for (;;) {
    try {
      await step();
      break;
    } catch (error) {
      if (!isLockTimeout(error) || performance.now() >= deadline) throw error;
    }
    await sleep(PAUSE_MS);
  }
  await sql(manager, 'RESET lock_timeout');
}

/** `detaching`: a process was interrupted before the second half. */
type AttachState = 'attached' | 'detaching' | 'detached' | 'gone';

export async function partitionState(
  manager: EntityManager,
  table: string,
  partition: string,
): Promise<AttachState> {
  const { rows } = await sql<{ pending: boolean | null }>(
    manager,
    `SELECT i.inhdetachpending AS pending FROM pg_class c
     LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = $1::regclass
     WHERE c.oid = to_regclass($2)`,
    [table, partition],
  );
  const pending = rows[0]?.pending;
  if (pending === undefined) return 'gone';
  if (pending === null) return 'detached';
  return pending ? 'detaching' : 'attached';
}
