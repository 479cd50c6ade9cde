import { Gauge, type Registry } from 'prom-client';
import type { DailyPartitions, PartitionState } from '../infra/daily-partitions.js';
import { KeptReading } from '../infra/kept-reading.js';
import type { DailyTable } from '../infra/partition-days.js';

/** Shows per table how many days exist ahead and how many are overdue for deletion, each in a separate query. */
export function showPartitions(
  registry: Registry,
  partitions: DailyPartitions,
  tables: readonly DailyTable[],
): void {
  const readings = new Map(
    tables.map((daily) => [
      daily.table,
      new KeptReading(`database_partitions of ${daily.table}`, () => partitions.state(daily)),
    ]),
  );
  const show = (name: string, help: string, valueOf: (state: PartitionState) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ['table'],
      registers: [registry],
      async collect() {
        this.reset();
        for (const [table, reading] of readings) {
          const state = await reading.current();
          if (state) this.set({ table }, valueOf(state));
        }
      },
    });
  };
  show(
    'database_partition_days_ready',
    'Consecutive days after today with a partition. 0: writes will fail tomorrow. -1: writes fail today.',
    ({ daysReady }) => daysReady,
  );
  show(
    'database_partition_days_overdue',
    'Days kept beyond their retention period, including days that an open delivery still needs.',
    ({ daysOverdue }) => daysOverdue,
  );
  show('database_partitions', 'Partitions of the table.', ({ attached }) => attached);
}
