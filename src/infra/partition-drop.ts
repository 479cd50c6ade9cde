import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { type DatabaseClient, isLockTimeout, sql } from './database/index.js';
import { boundsOf, type DailyTable, type Day, dayOf, dayOfPartition } from './partition-days.js';
import { lockSession, releaseSession } from './partition-locks.js';

/** How long a step waits for a lock at a time: not so long that the server would cancel an autovacuum that has it. */
const TRY_MS = 80;
const PAUSE_MS = 20;
const STEP_MS = 60_000;
/** How long it is tried; then the next maintenance finishes. */
const PATIENCE_MS = 2_000;

/** A day's partition that is dropped. */
interface OldDay {
  readonly partition: string;
  readonly day: Day;
  readonly stopping: AbortSignal | undefined;
}

/**
 * Detaches and drops. Readers and writers go on meanwhile; a transaction that uses the table already is waited for,
 * for a moment, and else the next maintenance finishes. Answers whether the day is gone.
 * @param direct connections of its own: no transaction may be open around DETACH ... CONCURRENTLY
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
    // A process that freezes with the lock would keep everybody from making partitions: the server ends its session.
    await sql(runner.manager, `SET idle_session_timeout = '60s'`);
    // To drop the files of a large day, or to look through it, takes longer than the other statements of a worker.
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
  // Who came to need it between the look and the detachment has committed by now; nobody can from here on.
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

/** Goes on where an earlier try, or another process, was cut. */
async function detach(manager: EntityManager, table: string, partition: string): Promise<void> {
  const state = await partitionState(manager, table, partition);
  if (state === 'attached')
    await sql(manager, `ALTER TABLE ${table} DETACH PARTITION ${partition} CONCURRENTLY`);
  if (state === 'detaching')
    await sql(manager, `ALTER TABLE ${table} DETACH PARTITION ${partition} FINALIZE`);
}

/** Again and again, as long as only a lock is missing. @throws QueryFailedError of the last try */
async function patiently(manager: EntityManager, step: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
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

/** `detaching`: by a process that was cut before the second half. */
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
