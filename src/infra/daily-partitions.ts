import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { DataSource, EntityManager } from 'typeorm';
import { DIRECT_DATABASE, sql, Transactions } from './database/index.js';
import {
  boundsOf,
  type DailyTable,
  dayOf,
  dayOfPartition,
  LAST_DAY,
  partitionName,
} from './partition-days.js';
import { dropPartition, partitionState } from './partition-drop.js';
import { lockUntilCommit } from './partition-locks.js';

const NAME = /^[a-z][a-z_]{0,39}$/;

/** Table names come from the code, never from outside; this enforces it. @throws Error */
function assertPlainName({ table }: DailyTable): void {
  if (!NAME.test(table)) throw new Error('a table must have a plain lower-case name');
}

/** Changes of one maintenance run. */
export interface PartitionChanges {
  readonly created: string[];
  readonly dropped: string[];
}

/** State of a table for operators. */
export interface PartitionState {
  /** Consecutive days after today with a partition; -1 when today has none. */
  readonly daysReady: number;
  /** Days older than their retention; open deliveries keep some. */
  readonly daysOverdue: number;
  readonly attached: number;
}

/** Existing partitions: `leaving` was detached by a process that ended before dropping it. */
interface Partitions {
  readonly today: Date;
  readonly attached: readonly string[];
  readonly leaving: readonly string[];
}

const FIRST_DAY = -1;

/**
 * Creates partitions from yesterday through seven days ahead, and drops those past their retention. No step locks the
 * table against readers or writers. Every step is repeatable and independent: the next maintenance completes what fails
 * or is interrupted. There is no default partition, because it would prevent concurrent detaching and would have to be
 * scanned before each day is attached.
 */
@Injectable()
export class DailyPartitions {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly transactions: Transactions,
    @Inject(DIRECT_DATABASE) private readonly direct: DataSource = manager.dataSource,
  ) {}

  /**
   * Creates missing partitions and drops old ones.
   * @param stopping once aborted, no further day is processed, and a day that is being emptied stays for the next
   * maintenance
   * @throws AggregateError after all steps were tried, when some failed
   */
  async maintain(daily: DailyTable, stopping?: AbortSignal): Promise<PartitionChanges> {
    const partitions = await this.look(daily);
    const created = await this.createMissing(daily, partitions);
    const dropped = await attemptEach(oldPartitions(daily, partitions), async (partition) =>
      stopping?.aborted ? false : dropPartition(this.direct, daily, partition, stopping),
    );
    throwFailures(daily, [...created.failures, ...dropped.failures]);
    return { created: created.done, dropped: dropped.done };
  }

  /** Creates missing partitions and returns their names. @throws AggregateError as `maintain` */
  async ensure(daily: DailyTable): Promise<readonly string[]> {
    const { done, failures } = await this.createMissing(daily, await this.look(daily));
    throwFailures(daily, failures);
    return done;
  }

  /** Whether partitions for today and tomorrow exist. */
  async coversTomorrow(daily: DailyTable): Promise<boolean> {
    const { today, attached } = await this.look(daily);
    return [0, 1].every((days) => attached.includes(partitionName(daily.table, dayOf(today, days))));
  }

  /** How many days ahead have partitions, and how many days are overdue for deletion. */
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

  /** Today by the database's clock (D40), and the existing partitions. */
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

  /**
   * Creates a separate table and then attaches it. CREATE TABLE ... PARTITION OF would need an exclusive lock on the
   * whole table, and would wait for every reader.
   */
  private async create(daily: DailyTable, name: string, day: Date): Promise<boolean> {
    const { table } = daily;
    const [from, to] = boundsOf(daily, { from: day, to: dayOf(day, 1) });
    return this.transactions.run(async (tx) => {
      await lockUntilCommit(tx, table);
      if ((await partitionState(tx.manager, table, name)) === 'attached') return false;
      await sql(tx.manager, `CREATE TABLE ${name} (LIKE ${table} INCLUDING ALL)`);
      await sql(
        tx.manager,
        `ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}')`,
      );
      return true;
    });
  }
}

interface Attempted {
  /** Names of the completed changes. */
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

/** The log shows an error's message, but not the errors it aggregates. */
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
