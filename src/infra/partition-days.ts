import type { DataSource, EntityManager } from 'typeorm';
import { DAY_MS } from '../common/durations.js';
import { idFloor, type IdPrefix } from '../common/ids.js';
import { sql } from './database/index.js';

/** The day of a partition, UTC: from its midnight to the next. */
export interface Day {
  readonly from: Date;
  readonly to: Date;
}

/** A table partitioned by day, and its retention. */
export interface DailyTable {
  /** Partitioned by range, such as `events_live`; its partitions are named `events_live_p20261121`. */
  readonly table: string;
  /** Type of its ranges: times, or ids of this prefix, which begin with their time. */
  readonly ranges: 'times' | { readonly idPrefix: IdPrefix };
  /** Whole days that are kept in addition to today. */
  readonly retentionDays: number;
  /**
   * Called before an old day is detached, and again when no transaction can reach it any longer. A day that is still
   * needed stays.
   * @param stopping check it between the steps of long work
   */
  isNeeded?(manager: EntityManager, partition: string, day: Day, stopping?: AbortSignal): Promise<boolean>;
  /** Days before yesterday that may still receive rows. */
  openDays?(manager: EntityManager): Promise<readonly Date[]>;
}

/**
 * Days ahead for which partitions are created. Every writing process creates them at its start and every ten minutes,
 * so writes survive a week without any such run.
 */
export const LAST_DAY = 7;
/** Maximum days that an id used as partition key may be ahead of the database's clock. Later ids have no partition. */
export const MAX_DAYS_AHEAD = LAST_DAY + 1;
/** Midnight UTC, `days` after the day of `at`. */
export function dayOf(at: Date, days = 0): Date {
  return new Date(Math.floor(at.getTime() / DAY_MS) * DAY_MS + days * DAY_MS);
}

/** `<table>_p20261121` */
export function partitionName(table: string, day: Date): string {
  return `${table}_p${day.toISOString().slice(0, 10).replaceAll('-', '')}`;
}

/** The day in a partition's name; null if the name is not that of a daily partition of this table. */
export function dayOfPartition(table: string, partition: string): Date | null {
  if (!partition.startsWith(`${table}_p`)) return null;
  const digits = /^(\d{4})(\d{2})(\d{2})$/.exec(partition.slice(table.length + 2));
  return digits ? new Date(`${digits[1]}-${digits[2]}-${digits[3]}T00:00:00Z`) : null;
}

/** Bounds of the day's partition, in the type of the table's ranges. */
export function boundsOf({ ranges }: DailyTable, { from, to }: Day): [string, string] {
  if (ranges === 'times') return [from.toISOString(), to.toISOString()];
  return [idFloor(ranges.idPrefix, from), idFloor(ranges.idPrefix, to)];
}

const ASKED_AGAIN_AFTER_MS = 60_000;
const oldestDays = new WeakMap<DataSource, Map<string, { readonly day: Date; readonly askedAtMs: number }>>();

/**
 * The oldest day for which one of the tables has a partition, up to a minute old; today if there is none. For readers
 * that go back in time step by step and whose last step has no lower bound.
 */
export async function oldestDay(manager: EntityManager, tables: readonly string[]): Promise<Date> {
  const { dataSource } = manager;
  const known = oldestDays.get(dataSource) ?? new Map<string, { day: Date; askedAtMs: number }>();
  oldestDays.set(dataSource, known);
  const kept = known.get(tables.join());
  if (kept && performance.now() - kept.askedAtMs < ASKED_AGAIN_AFTER_MS) return kept.day;
  const day = await askOldestDay(manager, tables);
  known.set(tables.join(), { day, askedAtMs: performance.now() });
  return day;
}

async function askOldestDay(manager: EntityManager, tables: readonly string[]): Promise<Date> {
  const { rows } = await sql<{ day: Date | null }>(
    manager,
    `SELECT to_timestamp(min(right(c.relname, 8)) || ' UTC', 'YYYYMMDD TZ') AS day
     FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = ANY ($1::text[]::regclass[])`,
    [tables],
  );
  return rows[0]!.day ?? dayOf(new Date());
}
