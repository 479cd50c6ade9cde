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
export function assertPlainNames({ table, column }: DailyTable): void {
  if (!NAME.test(table) || !NAME.test(column))
    throw new Error('table and column must be plain lower-case names');
}

/** Midnight UTC, `days` after the day of `at`. */
export function dayOf(at: Date, days = 0): Date {
  return new Date(Math.floor(at.getTime() / DAY_MS) * DAY_MS + days * DAY_MS);
}

/** `<table>_p20261121` */
export function partitionName(table: string, day: Date): string {
  return `${table}_p${day.toISOString().slice(0, 10).replaceAll('-', '')}`;
}

/** The day of a partition's name; null when it is not the name of a day's partition of this table. */
export function dayOfPartition(table: string, partition: string): Date | null {
  if (!partition.startsWith(`${table}_p`)) return null;
  const digits = /^(\d{4})(\d{2})(\d{2})$/.exec(partition.slice(table.length + 2));
  return digits ? new Date(`${digits[1]}-${digits[2]}-${digits[3]}T00:00:00Z`) : null;
}
