import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { DAY_MS } from '../common/durations.js';
import { idFloor } from '../common/ids.js';
import type { DailyTable, Day } from '../infra/partition-days.js';
import { sql } from '../infra/database/index.js';
import { IS_OPEN } from './webhook-delivery.entity.js';

/** Tables whose daily partitions hold a mode's ended deliveries, by the day of their creation. */
export const DELIVERY_TABLES: Readonly<Record<Mode, string>> = {
  sandbox: 'webhook_deliveries_sandbox',
  live: 'webhook_deliveries_live',
};

/**
 * The daily partitions of ended deliveries and their retention (D44). A day is kept while one of its deliveries is
 * open, and until its last ended delivery has passed the retention.
 */
export function deliveryDays(retentionDays: Readonly<Record<Mode, number>>): readonly DailyTable[] {
  return (['sandbox', 'live'] as const).map((mode) => ({
    table: DELIVERY_TABLES[mode],
    ranges: 'times',
    retentionDays: retentionDays[mode],
    openDays: (manager) => openDays(manager, mode),
    isNeeded: async (manager, partition, day, stopping) =>
      (await hasOpen(manager, mode, day)) || purgeEnded(manager, partition, retentionDays[mode], stopping),
  }));
}

/** The daily partitions of attempts, by the time they were recorded. */
export function attemptDays(retentionDays: number): DailyTable {
  return { table: 'webhook_attempts', ranges: 'times', retentionDays };
}

/** Whether an open delivery still needs the body of an event of that day (D32). */
export function openDeliveriesNeed(mode: Mode): NonNullable<DailyTable['isNeeded']> {
  return async (manager, _partition, { from, to }) => {
    const { rows } = await sql(
      manager,
      `SELECT 1 FROM webhook_deliveries
       WHERE ${IS_OPEN} AND mode = $1 AND event_id >= $2 AND event_id < $3 LIMIT 1`,
      [mode, idFloor('evt', from), idFloor('evt', to)],
    );
    return rows.length > 0;
  };
}

/** Jumps from endpoint to endpoint in index order: a backlog of a million costs the same as one delivery. */
async function openDays(manager: EntityManager, mode: Mode): Promise<readonly Date[]> {
  const { rows } = await sql<{ oldest: Date }>(
    manager,
    `SELECT min(d.created_at) AS oldest FROM webhook_endpoints w
     CROSS JOIN LATERAL (SELECT created_at FROM webhook_deliveries
                         WHERE endpoint_id = w.id AND ${IS_OPEN} ORDER BY created_at, id LIMIT 1) AS d
     WHERE w.mode = $1 HAVING min(d.created_at) IS NOT NULL`,
    [mode],
  );
  const days: Date[] = [];
  for (let at = rows[0]?.oldest.getTime() ?? Infinity; at < Date.now(); at += DAY_MS) days.push(new Date(at));
  return days;
}

async function hasOpen(manager: EntityManager, mode: Mode, { from, to }: Day): Promise<boolean> {
  const { rows } = await sql(
    manager,
    `SELECT 1 FROM webhook_endpoints w WHERE w.mode = $1 AND EXISTS (
       SELECT 1 FROM webhook_deliveries d
       WHERE d.endpoint_id = w.id AND d.${IS_OPEN} AND d.created_at >= $2 AND d.created_at < $3) LIMIT 1`,
    [mode, from, to],
  );
  return rows.length > 0;
}

const PURGE_BATCH_ROWS = 2_000;
/** Limit per maintenance run, which holds the lock on the table's partitions. */
const MAX_PURGE_BATCHES = 50;

/**
 * Whether the day must stay, because some of its deliveries ended within the retention. If so, it deletes the others in
 * steps, one transaction each, until shutdown. Otherwise the whole day is dropped.
 */
async function purgeEnded(
  manager: EntityManager,
  partition: string,
  retentionDays: number,
  stopping?: AbortSignal,
): Promise<boolean> {
  const { rows } = await sql(
    manager,
    `SELECT 1 FROM ${partition} WHERE ended_at >= now() - $1::int * interval '1 day' LIMIT 1`,
    [retentionDays],
  );
  if (rows.length === 0) return false;
  for (let batch = 0; batch < MAX_PURGE_BATCHES && !stopping?.aborted; batch++) {
    const { affected } = await sql(
      manager,
      `DELETE FROM ${partition} WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM ${partition} WHERE ended_at < now() - $1::int * interval '1 day' LIMIT $2
         FOR UPDATE SKIP LOCKED))`,
      [retentionDays, PURGE_BATCH_ROWS],
    );
    if (affected < PURGE_BATCH_ROWS) break;
  }
  return true;
}
