export { DailyPartitions, type PartitionChanges } from './daily-partitions.js';
export type { DailyTable } from './daily-table.js';
