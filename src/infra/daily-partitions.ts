import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { idFloor } from '../common/ids.js';
import { DIRECT_DATABASE, sql, Transactions, type Tx } from './database/index.js';
import {
  type DailyTable,
  type Day,
  dayOf,
  dayOfPartition,
  LAST_DAY,
  partitionName,
} from './partition-days.js';

const NAME = /^[a-z][a-z_]{0,39}$/;

/** Names come from the code, never from outside; this keeps it so. @throws Error */
function assertPlainName({ table }: DailyTable): void {
  if (!NAME.test(table)) throw new Error('a table must have a plain lower-case name');
}

/** What one maintenance did. */
export interface PartitionChanges {
  readonly created: string[];
  readonly dropped: string[];
}

/** What operators see of a table. */
export interface PartitionState {
  /** Days after today that have a partition, without a gap; -1: today has none. */
  readonly daysReady: number;
  /** Days older than their retention; what is still needed keeps some. */
  readonly daysOverdue: number;
  readonly attached: number;
}

/** What there is: `leaving` was detached by a process that ended before it dropped it. */
interface Partitions {
  readonly today: Date;
  readonly attached: readonly string[];
  readonly leaving: readonly string[];
}

const FIRST_DAY = -1;
/** Any number; with the table's name it names this lock among the advisory locks of the database. */
const LOCK_CLASS = 7_302_115;
/** A detachment waits for whoever uses the table; nobody waits for it. */
const DETACH_PATIENCE = '2s';

/**
 * Makes the partitions of yesterday to in seven days, and drops those past their retention. No step locks the table
 * against readers or writers. Every step may be repeated and stands alone: what fails or is cut is made up for by the
 * next maintenance. There is no default partition: it would forbid to detach concurrently, and would have to be
 * searched before each day is attached.
 */
@Injectable()
export class DailyPartitions {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly transactions: Transactions,
    @Inject(DIRECT_DATABASE) private readonly direct: DataSource = manager.dataSource,
  ) {}

  /**
   * Makes what is missing and drops what is old.
   * @param stopping after it no further day is looked at, and one that is being emptied stays for the next maintenance
   * @throws AggregateError after all steps were tried, when some failed
   */
  async maintain(daily: DailyTable, stopping?: AbortSignal): Promise<PartitionChanges> {
    const partitions = await this.look(daily);
    const created = await this.createMissing(daily, partitions);
    const dropped = await attemptEach(oldPartitions(daily, partitions), async (partition) =>
      stopping?.aborted ? false : this.drop(daily, partition, stopping),
    );
    throwFailures(daily, [...created.failures, ...dropped.failures]);
    return { created: created.done, dropped: dropped.done };
  }

  /** Makes what is missing; answers their names. @throws AggregateError as `maintain` */
  async ensure(daily: DailyTable): Promise<readonly string[]> {
    const { done, failures } = await this.createMissing(daily, await this.look(daily));
    throwFailures(daily, failures);
    return done;
  }

  /** Whether what is written today and tomorrow has its partitions. */
  async coversTomorrow(daily: DailyTable): Promise<boolean> {
    const { today, attached } = await this.look(daily);
    return [0, 1].every((days) => attached.includes(partitionName(daily.table, dayOf(today, days))));
  }

  /** How far ahead what is written has its partitions, and how many days are kept beyond their retention. */
  async state(daily: DailyTable): Promise<PartitionState> {
    const partitions = await this.look(daily);
    const isThere = (days: number): boolean =>
      partitions.attached.includes(partitionName(daily.table, dayOf(partitions.today, days)));
    let ready = -1;
    while (isThere(ready + 1)) ready++;
    return {
      daysReady: ready,
      daysOverdue: oldPartitions(daily, partitions).length,
      attached: partitions.attached.length,
    };
  }

  private async createMissing(daily: DailyTable, { today, attached }: Partitions): Promise<Attempted> {
    const open = (await daily.openDays?.(this.manager)) ?? [];
    const wanted = [...open.map((at) => dayOf(at)), ...nextDays(today)];
    const missing = new Map(wanted.map((day) => [partitionName(daily.table, day), day]));
    for (const name of attached) missing.delete(name);
    return attemptEach([...missing.keys()], (name) => this.create(daily, name, missing.get(name)!));
  }

  /** Today by the database's clock (D40), and the partitions there are. */
  private async look(daily: DailyTable): Promise<Partitions> {
    assertPlainName(daily);
    const { rows } = await sql<{ now: Date; attached: string[]; leaving: string[] }>(
      this.manager,
      `SELECT now() AS now,
              ARRAY(SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                    WHERE i.inhparent = $1::regclass AND NOT i.inhdetachpending ORDER BY c.relname) AS attached,
              ARRAY(SELECT c.relname::text FROM pg_class c
                    LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND NOT i.inhdetachpending
                    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = $1::regclass)
                      AND c.relkind = 'r' AND i.inhrelid IS NULL AND c.relname ~ ('^' || $1::text || '_p[0-9]{8}$')
                    ORDER BY c.relname) AS leaving`,
      [daily.table],
    );
    return { today: dayOf(rows[0]!.now), attached: rows[0]!.attached, leaving: rows[0]!.leaving };
  }

  /** Built apart and then attached: CREATE TABLE ... PARTITION OF would lock the whole table, behind every reader. */
  private async create(daily: DailyTable, name: string, day: Date): Promise<boolean> {
    const { table } = daily;
    const [from, to] = boundsOf(daily, { from: day, to: dayOf(day, 1) });
    return this.transactions.run(async (tx) => {
      await lockUntilCommit(tx, table);
      if (await isPartition(tx.manager, table, name)) return false;
      await sql(tx.manager, `CREATE TABLE ${name} (LIKE ${table} INCLUDING ALL)`);
      await sql(
        tx.manager,
        `ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}')`,
      );
      return true;
    });
  }

  /**
   * Detaches and drops. Readers and writers go on meanwhile; a transaction that uses the table already is waited for,
   * for a moment, and else the next maintenance finishes. Answers whether the day is gone.
   */
  private async drop(daily: DailyTable, partition: string, stopping?: AbortSignal): Promise<boolean> {
    const from = dayOfPartition(daily.table, partition)!;
    const day = { from, to: dayOf(from, 1) };
    // No transaction may be open around DETACH ... CONCURRENTLY, so the lock is the session's.
    const runner = this.direct.createQueryRunner();
    try {
      // A process that freezes with the lock would keep everybody from making partitions: the server ends its session.
      await sql(runner.manager, `SET idle_session_timeout = '60s'`);
      if (!(await lockSession(runner, daily.table))) return false;
      await sql(runner.manager, `SET lock_timeout = '${DETACH_PATIENCE}'`);
      return await detachAndDrop(runner, daily, { partition, day, stopping });
    } finally {
      await releaseSession(runner, daily.table);
    }
  }
}

interface OldDay {
  readonly partition: string;
  readonly day: Day;
  readonly stopping: AbortSignal | undefined;
}

async function detachAndDrop(
  runner: QueryRunner,
  daily: DailyTable,
  { partition, day, stopping }: OldDay,
): Promise<boolean> {
  const { table } = daily;
  const { manager } = runner;
  const state = await stateOf(manager, table, partition);
  if (state === 'gone') return false;
  const isNeeded = async (): Promise<boolean> =>
    (await daily.isNeeded?.(manager, partition, day, stopping)) ?? false;
  if (state === 'attached') {
    if (await isNeeded()) return false;
    await sql(manager, `ALTER TABLE ${table} DETACH PARTITION ${partition} CONCURRENTLY`);
  }
  if (state === 'detaching')
    await sql(manager, `ALTER TABLE ${table} DETACH PARTITION ${partition} FINALIZE`);
  // Who came to need it between the look and the detachment has committed by now; nobody can from here on.
  if (await isNeeded()) {
    const [from, to] = boundsOf(daily, day);
    await sql(
      manager,
      `ALTER TABLE ${table} ATTACH PARTITION ${partition} FOR VALUES FROM ('${from}') TO ('${to}')`,
    );
    return false;
  }
  await sql(manager, `DROP TABLE ${partition}`);
  return true;
}

function boundsOf({ ranges }: DailyTable, { from, to }: Day): [string, string] {
  if (ranges === 'times') return [from.toISOString(), to.toISOString()];
  return [idFloor(ranges.idPrefix, from), idFloor(ranges.idPrefix, to)];
}

type AttachState = 'attached' | 'detaching' | 'detached' | 'gone';

async function stateOf(manager: EntityManager, table: string, partition: string): Promise<AttachState> {
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

async function isPartition(manager: EntityManager, table: string, name: string): Promise<boolean> {
  return (await stateOf(manager, table, name)) === 'attached';
}

/** Until the end of the transaction. Two workers at once: the second finds the work done. */
async function lockUntilCommit(tx: Tx, table: string): Promise<void> {
  // A process that freezes in here must not keep everybody from making partitions: the server ends its session.
  await sql(tx.manager, `SET LOCAL idle_in_transaction_session_timeout = '2s'`);
  await sql(tx.manager, 'SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK_CLASS, table]);
}

/** False when another process is at it. */
async function lockSession(runner: QueryRunner, table: string): Promise<boolean> {
  const { rows } = await sql<{ locked: boolean }>(
    runner.manager,
    'SELECT pg_try_advisory_lock($1, hashtext($2)) AS locked',
    [LOCK_CLASS, table],
  );
  return rows[0]!.locked;
}

/** Unlocking what is not locked only makes a warning of the server. */
async function releaseSession(runner: QueryRunner, table: string): Promise<void> {
  try {
    await sql(runner.manager, 'RESET lock_timeout');
    await sql(runner.manager, 'RESET idle_session_timeout');
    await sql(runner.manager, 'SELECT pg_advisory_unlock($1, hashtext($2))', [LOCK_CLASS, table]);
  } finally {
    await runner.release();
  }
}

interface Attempted {
  /** Names of what was done. */
  readonly done: string[];
  readonly failures: readonly unknown[];
}

async function attemptEach(
  names: readonly string[],
  step: (name: string) => Promise<boolean>,
): Promise<Attempted> {
  const done: string[] = [];
  const failures: unknown[] = [];
  for (const name of names) {
    try {
      if (await step(name)) done.push(name);
    } catch (error) {
      failures.push(error);
    }
  }
  return { done, failures };
}

/** The log shows an error's message, not what it aggregates. */
function throwFailures({ table }: DailyTable, failures: readonly unknown[]): void {
  if (failures.length === 0) return;
  const reasons = failures.map((failure) => (failure instanceof Error ? failure.message : 'unknown'));
  throw new AggregateError(failures, `partitions of ${table} are not complete: ${reasons.join('; ')}`);
}

function nextDays(today: Date): Date[] {
  return Array.from({ length: LAST_DAY - FIRST_DAY + 1 }, (_, nth) => dayOf(today, FIRST_DAY + nth));
}

function oldPartitions(
  { table, retentionDays }: DailyTable,
  { today, attached, leaving }: Partitions,
): string[] {
  const firstKept = dayOf(today, -retentionDays);
  return [...leaving, ...attached].filter((partition) => {
    const day = dayOfPartition(table, partition);
    return day !== null && day < firstKept;
  });
}
