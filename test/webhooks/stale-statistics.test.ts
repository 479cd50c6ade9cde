import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EntityManager } from 'typeorm';
import {
  type AttemptOutcomeRow,
  DeliveriesRepository,
  type StartedDelivery,
} from '../../src/webhooks/worker/deliveries.repository.js';
import { attemptOf, DeliveriesBed, FENCE, IN_SERVICE, judged, OWNER, withIds } from './deliveries-bed.js';

const ENDPOINTS = 24;
/** Of an endpoint that is disabled: nothing of what is done here is about them. */
const WAITING = 5_000;
/** Each delivery is found, locked and written, and so are its versions before. */
const MOST_ROWS = 12 * ENDPOINTS;
/** From the sixth time on a connection keeps its plan. */
const TIMES_BEFORE = 6;

let bed: DeliveriesBed;
const endpoints = withIds(
  'whe',
  Array.from({ length: ENDPOINTS }, () => IN_SERVICE),
);
const idle = { ...IN_SERVICE, id: 'whe_idle', enabled: false };
const blocked = { ...IN_SERVICE, id: 'whe_blocked', blocked: true };

beforeAll(async () => {
  bed = await DeliveriesBed.open();
  await bed.insertEndpoints([...endpoints, blocked, idle]);
  await insertWaiting();
  await bed.manager.query('DELETE FROM webhook_deliveries');
  // As autovacuum does in a quiet minute.
  await bed.manager.query('VACUUM (ANALYZE) webhook_deliveries_open');
  for (let time = 0; time < TIMES_BEFORE; time++) await claimAndRecord(0);
  await insertWaiting();
  await bed.insertDeliveries(
    [...endpoints, blocked].map(({ id }, nth) => ({
      ...{
        id: `dlv_due_${nth}`,
        endpointId: id,
        kind: 'event',
        status: 'pending',
        due: true,
        givenUp: false,
      },
      ...{ countedAttempts: 0, interruptions: 0 },
    })),
  );
});
afterAll(() => bed.close());

async function insertWaiting(): Promise<void> {
  await bed.manager.query(
    `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, next_attempt_at)
     SELECT 'dlv_waiting_' || n, $1, w.partner_id, w.mode, 'evt_' || n, 'esim.activated', 'event', 'pending', now()
     FROM webhook_endpoints w, generate_series(1, $2::int) AS n WHERE w.id = $1`,
    [idle.id, WAITING],
  );
}

/** Rows of open deliveries that this connection has looked at, besides what it has reported. */
async function rowsRead(manager: EntityManager): Promise<number> {
  const [read] = await manager.query<[{ rows: number }]>(
    `SELECT (seq_tup_read + idx_tup_fetch)::int AS rows FROM pg_stat_xact_user_tables WHERE relname = 'webhook_deliveries_open'`,
  );
  return read.rows;
}

/** How many rows each of the two reads, both on one connection. */
async function claimAndRecord(due: number): Promise<Record<'claim' | 'record', number>> {
  return bed.transactions.run(async (tx) => {
    const { manager } = tx;
    const deliveries = new DeliveriesRepository(manager);
    const before = await rowsRead(manager);
    const claims = [...endpoints, blocked].map(({ id }) => ({ endpointId: id, fence: FENCE, free: 4 }));
    const claimed = [...(await deliveries.claim(OWNER, claims)).values()].flatMap(
      (claim) => claim.deliveries,
    );
    const afterClaim = await rowsRead(manager);
    const recorded =
      claimed.length > 0 ? await deliveries.record(manager, OWNER, claimed.map(toOutcome)) : [];
    const afterRecord = await rowsRead(manager);
    expect([claimed.length, recorded.length]).toEqual([due, due]);
    await manager.query('SELECT pg_stat_force_next_flush()');
    return { claim: afterClaim - before, record: afterRecord - afterClaim };
  });
}

/** Scans of each index of the queue so far. */
async function scans(): Promise<Record<string, number>> {
  const { rows } = await bed.pool.query<{ name: string; scans: number }>(
    `SELECT indexrelname AS name, idx_scan::int AS scans FROM pg_stat_user_indexes WHERE relname = 'webhook_deliveries_open'`,
  );
  return Object.fromEntries(rows.map(({ name, scans }) => [name, scans]));
}

it('a claim and the record of attempts read none of what came in after PostgreSQL had found the queue empty', async () => {
  const before = await scans();
  const rows = await claimAndRecord(ENDPOINTS);
  const after = await scans();
  // Another index has the ids as well, and is walked from its beginning to its end to find one.
  const used = Object.keys(after).filter((name) => after[name] !== before[name]);
  expect(used.sort()).toEqual(['webhook_deliveries_due', 'webhook_deliveries_open_pkey']);
  const all = Object.values(rows);
  expect(Math.min(...all), JSON.stringify(rows)).toBeGreaterThanOrEqual(ENDPOINTS);
  expect(Math.max(...all), JSON.stringify(rows)).toBeLessThan(MOST_ROWS);
});

/** Of two, one is delivered and one is to be tried again. */
function toOutcome(
  { id: deliveryId, endpointId, fence, countedAttempts }: StartedDelivery,
  nth: number,
): AttemptOutcomeRow {
  const outcome = nth % 2 === 0 ? 'delivered' : 'failed';
  return judged(bed.config, attemptOf({ deliveryId, endpointId, fence, countedAttempts, outcome }));
}
