import type { Registry } from 'prom-client';
import type { EntityManager } from 'typeorm';
import { readAgeSeconds } from '../infra/database/index.js';
import { showReading } from '../infra/kept-reading.js';

const NAME = 'restore_open_seconds';
const OPEN_FOR = `SELECT extract(epoch FROM statement_timestamp() - opened_at)::float8 AS seconds
  FROM restore_epochs WHERE completed_at IS NULL`;

/** How long writes have been refused (D54), in case someone forgets to finish a repair. Once per process. */
export function showOpenRestore(registry: Registry, manager: EntityManager): void {
  if (registry.getSingleMetric(NAME)) return;
  const help = 'For how long writes are refused as a restored database is being repaired; 0 when none is.';
  showReading(registry, { name: NAME, help }, () => readAgeSeconds(manager, OPEN_FOR));
}
