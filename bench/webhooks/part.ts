import type { Cleanups } from '../cleanups.js';
import type { BenchOptions } from '../options.js';
import type { Section } from '../report/report.js';
import type { DatabaseServer } from '../service/database-server.js';

/** One of the measurements of `npm run bench -- webhooks`. */
export type WebhookPart = (
  server: DatabaseServer,
  options: BenchOptions,
  cleanups: Cleanups,
) => Promise<Section>;

/** Indexes from `first` on. */
export function indexes(count: number, first = 0): number[] {
  return Array.from({ length: count }, (_, index) => first + index);
}
