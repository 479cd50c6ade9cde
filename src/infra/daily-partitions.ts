import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, Transactions, type Tx } from './database/index.js';
/** A table partitioned by day (UTC), with a default partition `<table>_default`. */
export interface DailyTable {
  readonly table: string;
  /** The `timestamptz` column that it is partitioned by. */
  readonly column: string;
  /** Whole days that are kept, besides today. */
  readonly retentionDays: number;
}

const DAY_MS = 86_400_000;
const NAME = /^[a-z][a-z_]{0,39}$/;

/** Names come from the code, never from outside; this keeps it so. @throws Error */
function assertPlainNames({ table, column }: DailyTable): void {
  if (!NAME.test(table) || !NAME.test(column))
    throw new Error('table and column must be plain lower-case names');
}

/** Midnight UTC, `days` after the day of `at`. */
function dayOf(at: Date, days = 0): Date {
  return new Date(Math.floor(at.getTime() / DAY_MS) * DAY_MS + days * DAY_MS);
}

/** `<table>_p20261121` */
function partitionName(table: string, day: Date): string {
  return `${table}_p${day.toISOString().slice(0, 10).replaceAll('-', '')}`;
}

/** The day of a partition's name; null when it is not the name of a day's partition of this table. */
function dayOfPartition(table: string, partition: string): Date | null {
  if (!partition.startsWith(`${table}_p`)) return null;
  const digits = /^(\d{4})(\d{2})(\d{2})$/.exec(partition.slice(table.length + 2));
  return digits ? new Date(`${digits[1]}-${digits[2]}-${digits[3]}T00:00:00Z`) : null;
}

/** What one maintenance did. */
export interface PartitionChanges {
  readonly created: string[];
  readonly dropped: string[];
  /** Old rows deleted from the default partition. */
  deletedRows: number;
}

const FIRST_DAY = -1;
const LAST_DAY = 3;
/** Any number; with the table's name it names this lock among the advisory locks of the database. */
const LOCK_CLASS = 7_302_115;
/** More rows than these are not moved out of the default partition: calls would wait for it. */
const MAX_MOVED_ROWS = 20_000;
const DELETE_BATCH_ROWS = 5_000;
/** Of one maintenance: it must be able to end in time when the worker stops. */
const MAX_DELETE_BATCHES = 20;

/**
 * Makes the partitions of yesterday to in three days, and drops those past their retention. Every step is its own
 * short transaction under an advisory lock, may be repeated, and stands alone: one that fails is made up for by
 * the next maintenance, and the default partition takes the rows of a day without a partition meanwhile.
 */
@Injectable()
export class DailyPartitions {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly transactions: Transactions,
  ) {}

  /** @throws AggregateError after all steps were tried, when some failed */
  async maintain(daily: DailyTable): Promise<PartitionChanges> {
    assertPlainNames(daily);
    const changes: PartitionChanges = { created: [], dropped: [], deletedRows: 0 };
    const failures: unknown[] = [];
    const attempt = (step: () => Promise<void>) => step().catch((error: unknown) => failures.push(error));
    const { today, partitions } = await this.look(daily);
    for (const day of missingDays(daily, today, partitions)) {
      await attempt(async () => {
        if (await this.create(daily, day)) changes.created.push(partitionName(daily.table, day));
      });
    }
    for (const partition of oldPartitions(daily, today, partitions)) {
      await attempt(async () => {
        if (await this.drop(daily, partition)) changes.dropped.push(partition);
      });
    }
    await attempt(async () => {
      changes.deletedRows = await this.deleteLeftovers(daily, dayOf(today, -daily.retentionDays));
    });
    if (failures.length > 0) throw toOneError(daily, failures);
    return changes;
  }

  /** Today by the database's clock (D40), and the partitions there are. */
  private async look({ table }: DailyTable): Promise<{ today: Date; partitions: string[] }> {
    const { rows } = await sql<{ now: Date; partitions: string[] }>(
      this.manager,
      `SELECT now() AS now, ARRAY(SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                                  WHERE i.inhparent = $1::regclass ORDER BY c.relname) AS partitions`,
      [table],
    );
    return { today: dayOf(rows[0]!.now), partitions: rows[0]!.partitions };
  }

  /**
   * Built apart and then attached: CREATE TABLE ... PARTITION OF would lock the whole table, behind every reader.
   * Rows of that day that the default partition holds are moved first, or the day could never get a partition;
   * when there are too many to move in a moment, they stay, and so does the day: no rows are lost or hidden by it.
   * An insert that was already on its way to the default partition fails with 23514; writers try again.
   */
  private async create({ table, column }: DailyTable, day: Date): Promise<boolean> {
    const name = partitionName(table, day);
    const bounds = [day.toISOString(), dayOf(day, 1).toISOString()];
    return this.transactions.run(async (tx) => {
      await lock(tx, table);
      if (await isPartition(tx, table, name)) return false;
      // Nobody may add a row of that day between the move and the attachment.
      await sql(tx.manager, `LOCK TABLE ${table}_default IN ACCESS EXCLUSIVE MODE`);
      const ofThatDay = `${column} >= $1 AND ${column} < $2`;
      const { rows } = await sql<{ count: number }>(
        tx.manager,
        `SELECT count(*)::int AS count
         FROM (SELECT 1 FROM ${table}_default WHERE ${ofThatDay} LIMIT ${MAX_MOVED_ROWS + 1}) AS found`,
        bounds,
      );
      if (rows[0]!.count > MAX_MOVED_ROWS) return false;
      await sql(tx.manager, `CREATE TABLE ${name} (LIKE ${table} INCLUDING ALL)`);
      await sql(
        tx.manager,
        `WITH moved AS (DELETE FROM ${table}_default WHERE ${ofThatDay} RETURNING *) INSERT INTO ${name} SELECT * FROM moved`,
        bounds,
      );
      await sql(
        tx.manager,
        `ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM ('${bounds[0]}') TO ('${bounds[1]}')`,
      );
      return true;
    });
  }

  private async drop({ table }: DailyTable, partition: string): Promise<boolean> {
    return this.transactions.run(async (tx) => {
      await lock(tx, table);
      if (!(await isPartition(tx, table, partition))) return false;
      // The drop locks the whole table: behind a long reader it would make every writer wait. It comes again.
      await sql(tx.manager, `SET LOCAL lock_timeout = '1s'`);
      await sql(tx.manager, `DROP TABLE ${partition}`);
      return true;
    });
  }

  private async deleteLeftovers({ table, column }: DailyTable, before: Date): Promise<number> {
    let deleted = 0;
    for (let batch = 0; batch < MAX_DELETE_BATCHES; batch++) {
      const { affected } = await sql(
        this.manager,
        `DELETE FROM ${table}_default WHERE ctid = ANY (ARRAY(
           SELECT ctid FROM ${table}_default WHERE ${column} < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))`,
        [before, DELETE_BATCH_ROWS],
      );
      deleted += affected;
      if (affected < DELETE_BATCH_ROWS) break;
    }
    return deleted;
  }
}

/** The log shows an error's message, not what it aggregates. */
function toOneError({ table }: DailyTable, failures: readonly unknown[]): AggregateError {
  const reasons = failures.map((failure) => (failure instanceof Error ? failure.message : 'unknown'));
  return new AggregateError(failures, `partitions of ${table} are not complete: ${reasons.join('; ')}`);
}

/** Until the end of the transaction. Two workers at once: the second finds the work done. */
async function lock(tx: Tx, table: string): Promise<void> {
  // A process that freezes in here must not keep everybody from inserting: the server ends its session.
  await sql(tx.manager, `SET LOCAL idle_in_transaction_session_timeout = '2s'`);
  await sql(tx.manager, 'SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK_CLASS, table]);
}

async function isPartition(tx: Tx, table: string, name: string): Promise<boolean> {
  const { rows } = await sql(
    tx.manager,
    `SELECT 1 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = $1::regclass AND c.relname = $2`,
    [table, name],
  );
  return rows.length > 0;
}

function missingDays({ table }: DailyTable, today: Date, partitions: readonly string[]): Date[] {
  const days: Date[] = [];
  for (let offset = FIRST_DAY; offset <= LAST_DAY; offset++) {
    const day = dayOf(today, offset);
    if (!partitions.includes(partitionName(table, day))) days.push(day);
  }
  return days;
}

function oldPartitions(
  { table, retentionDays }: DailyTable,
  today: Date,
  partitions: readonly string[],
): string[] {
  const firstKept = dayOf(today, -retentionDays);
  return partitions.filter((partition) => {
    const day = dayOfPartition(table, partition);
    return day !== null && day < firstKept;
  });
}
