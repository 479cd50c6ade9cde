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
  const help = 'How long writes have been blocked for the repair of a restored database; 0 if they are not.';
  showReading(registry, { name: NAME, help }, () => readAgeSeconds(manager, OPEN_FOR));
}
