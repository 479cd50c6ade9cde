import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EntityManager } from 'typeorm';
import type { FinishedAttempt } from '../../src/webhooks/worker/attempt-result.js';
import {
  type ClaimedDelivery,
  DeliveryJobsRepository,
} from '../../src/webhooks/worker/delivery-jobs.repository.js';
import { OutcomesRepository } from '../../src/webhooks/worker/outcomes.repository.js';
import { attemptOf, DeliveryRulesBed, IN_SERVICE, withIds } from './delivery-rules-bed.js';

const ENDPOINTS = 24;
/** Of an endpoint that is disabled: nothing of what is done here is about them. */
const WAITING = 5_000;
/** Each delivery is found, locked and written, and so are its versions before. */
const MOST_ROWS = 12 * ENDPOINTS;
/** From the sixth time on a connection keeps its plan. */
const TIMES_BEFORE = 6;

let bed: DeliveryRulesBed;
const endpoints = withIds(
  'whe',
  Array.from({ length: ENDPOINTS }, () => IN_SERVICE),
);
const idle = { ...IN_SERVICE, id: 'whe_idle', enabled: false };
const blocked = { ...IN_SERVICE, id: 'whe_blocked', blocked: true };

beforeAll(async () => {
  bed = await DeliveryRulesBed.open();
  await bed.insertEndpoints([...endpoints, blocked, idle]);
  await insertWaiting();
  await bed.manager.query('DELETE FROM webhook_deliveries');
  // As autovacuum does in a quiet minute.
  await bed.manager.query('VACUUM (ANALYZE) webhook_deliveries_open');
  for (let time = 0; time < TIMES_BEFORE; time++) await claimRenewAndRecord(0);
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

/** How many rows each of the three reads, all on one connection. */
async function claimRenewAndRecord(due: number): Promise<Record<'claim' | 'renewal' | 'record', number>> {
  return bed.transactions.run(async ({ manager }) => {
    const jobs = new DeliveryJobsRepository(manager, bed.config);
    const before = await rowsRead(manager);
    const claims = await jobs.claimMany([...endpoints, blocked].map(({ id }) => ({ group: id, limit: 4 })));
    const claimed = claims.flatMap(({ items }) => items);
    const afterClaim = await rowsRead(manager);
    await jobs.renew(claimed);
    const afterRenewal = await rowsRead(manager);
    const outcomes = new OutcomesRepository(bed.config);
    const recorded = await outcomes.record(manager, jobs.owner, claimed.map(toAttempt));
    const afterRecord = await rowsRead(manager);
    expect([claimed.length, recorded.length]).toEqual([due, due]);
    return {
      claim: afterClaim - before,
      renewal: afterRenewal - afterClaim,
      record: afterRecord - afterRenewal,
    };
  });
}

it('a claim, a renewal and the record of attempts read none of what came in after PostgreSQL had found the queue empty', async () => {
  const rows = await claimRenewAndRecord(ENDPOINTS);
  const all = Object.values(rows);
  expect(Math.min(...all), JSON.stringify(rows)).toBeGreaterThanOrEqual(ENDPOINTS);
  expect(Math.max(...all), JSON.stringify(rows)).toBeLessThan(MOST_ROWS);
});

/** Of two, one is delivered and one is to be tried again. */
function toAttempt(
  { id: deliveryId, endpointId, fence, countedAttempts }: ClaimedDelivery,
  nth: number,
): FinishedAttempt {
  const outcome = nth % 2 === 0 ? 'delivered' : 'failed';
  return attemptOf({ deliveryId, endpointId, fence, countedAttempts, outcome });
}
