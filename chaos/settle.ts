import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosBed } from './bed.js';
import { calmProviders } from './storm.js';

const SETTLE_LIMIT_MS = 480_000;
/** Most ends by itself; support is asked for the rest. */
const SUPPORT_AFTER_MS = 60_000;
const SUPPORT_AT_ONCE = 10;
const OPEN = `status IN ('pending', 'processing', 'canceling')`;

export interface Settlement {
  /** Orders that support ended because the wholesaler left them open. */
  readonly bySupport: number;
  readonly seconds: number;
  /** What had not ended when there was no more time; empty when all is well. */
  readonly stuck: readonly string[];
}

/**
 * Everybody is well again: what is owed is waited for, and support ends what the service has told it of (placed twice, or
 * late), as it would in earnest.
 */
export async function settle(bed: ChaosBed, say: (line: string) => void): Promise<Settlement> {
  const startedAt = performance.now();
  for (const { receiver } of bed.endpoints) receiver.calmDown();
  await calmProviders(bed.simulators);
  const bySupport = new Set<string>();
  let stuck: readonly string[] = [];
  while (performance.now() - startedAt < SETTLE_LIMIT_MS) {
    await enableEndpoints(bed);
    if (performance.now() - startedAt > SUPPORT_AFTER_MS) await askSupport(bed, bySupport);
    stuck = await openWork(bed);
    if (stuck.length === 0) break;
    say(`settling: ${stuck.join(', ')}`);
    await sleep(3_000);
  }
  return { bySupport: bySupport.size, seconds: (performance.now() - startedAt) / 1_000, stuck };
}

/** Whom the storm has disabled gets what was held. */
async function enableEndpoints(bed: ChaosBed): Promise<void> {
  const disabled = await bed.postgres.rows<{ id: string }>(
    'SELECT id FROM webhook_endpoints WHERE NOT enabled',
  );
  const ids = new Set(disabled.map(({ id }) => id));
  for (const { id, path } of bed.endpoints)
    if (ids.has(id)) await bed.callAdmin('POST', `${path}/enable`, {});
}

async function askSupport(bed: ChaosBed, settled: Set<string>): Promise<void> {
  const told = await bed.postgres.rows<{ id: string }>(
    `SELECT o.id FROM orders o WHERE ${OPEN}
       AND EXISTS (SELECT 1 FROM alerts a WHERE a.subject_id = o.id AND a.type = 'order.needs_review')`,
  );
  for (let from = 0; from < told.length; from += SUPPORT_AT_ONCE)
    await Promise.all(
      told.slice(from, from + SUPPORT_AT_ONCE).map(async ({ id }) => {
        if (await endOrder(bed, id)) settled.add(id);
      }),
    );
}

/** Whether support has ended it: what the wholesaler shows goes first, so `mark_failed` is refused for what was sold. */
async function endOrder(bed: ChaosBed, id: string): Promise<boolean> {
  for (const action of ['mark_issued', 'mark_failed']) {
    const body = { action, note: 'the storm is over' };
    const { status } = await bed.tryAdmin('POST', `/internal/v1/orders/${id}/reconcile`, body);
    if (status === 200) return true;
  }
  return false;
}

async function openWork(bed: ChaosBed): Promise<readonly string[]> {
  const rows = await bed.postgres.rows<{ what: string; count: number }>(
    `SELECT 'orders' AS what, count(*)::int AS count FROM orders WHERE ${OPEN}
     UNION ALL SELECT 'deliveries', count(*)::int FROM webhook_deliveries WHERE status IN ('pending', 'discarding')
     UNION ALL SELECT 'events without a position', count(*)::int FROM events WHERE position IS NULL`,
  );
  return rows.filter(({ count }) => count > 0).map(({ what, count }) => `${count} ${what}`);
}
