import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ATTEMPT_OUTCOMES, DELIVERY_KINDS } from '../../src/webhooks/delivery.js';
import { takesAttempts } from '../../src/webhooks/delivery-rules.js';
import {
  attemptOf,
  DeliveriesBed,
  type DeliveryRow,
  endpointStates,
  FENCE,
  IN_SERVICE,
  judged,
  OWNER,
  withIds,
} from './deliveries-bed.js';

const STATUSES = ['pending', 'discarding', 'delivered', 'failed', 'discarded'] as const;
const BOTH = [false, true];
/** Milliseconds by which two clocks of one statement may differ. */
const SAME_MS = 5;
const PENDING: Omit<DeliveryRow, 'id' | 'endpointId'> = {
  ...({ kind: 'event', status: 'pending' } as const),
  ...{ givenUp: false, countedAttempts: 0, interruptions: 0 },
};

let bed: DeliveriesBed;

beforeAll(async () => {
  bed = await DeliveriesBed.open();
});
afterAll(() => bed.close());

async function statesOf(prefix: string) {
  const { rows } = await bed.pool.query<{
    id: string;
    status: string;
    countedAttempts: number;
    interruptions: number;
    nextAttemptAt: Date | null;
    startedFence: string | null;
  }>(
    `SELECT id, status, counted_attempts AS "countedAttempts", interruptions, next_attempt_at AS "nextAttemptAt",
            started_fence AS "startedFence"
     FROM webhook_deliveries WHERE id LIKE $1 || '%'`,
    [prefix],
  );
  return new Map(rows.map(({ id, ...row }) => [id, row]));
}

describe('the statement that records attempts', () => {
  it('writes the state that the rules say, for every delivery that has an attempt under way (D30)', async () => {
    await bed.insertEndpoints([{ ...IN_SERVICE, id: 'whe_record', discards: true }]);
    const deliveries = withIds(
      'dlv_record',
      DELIVERY_KINDS.flatMap((kind) =>
        (['pending', 'discarding'] as const).flatMap((status) =>
          BOTH.flatMap((givenUp) =>
            [0, 4, 5].flatMap((countedAttempts) =>
              [0, 1, 2].flatMap((interruptions) =>
                ATTEMPT_OUTCOMES.map((outcome) => ({
                  ...{ kind, status, givenUp, countedAttempts, interruptions, outcome },
                  ...{ endpointId: 'whe_record', startedFence: Number(FENCE) },
                })),
              ),
            ),
          ),
        ),
      ),
    );
    await bed.insertDeliveries(deliveries);
    const before = await statesOf('dlv_record');
    const rows = deliveries.map(({ id: deliveryId, ...state }) =>
      judged(bed.config, attemptOf({ ...state, deliveryId, fence: FENCE })),
    );
    const startedAt = Date.now();
    const recorded = await bed.deliveries.record(bed.manager, OWNER, rows.toReversed());
    expect(recorded).toHaveLength(deliveries.length);
    const after = await statesOf('dlv_record');
    const exhausted = new Map(recorded.map((row) => [row.deliveryId, row.exhausted]));
    rows.forEach(({ attempt, after: owed, afterGivenUp }, nth) => {
      const { id, status, givenUp } = deliveries[nth]!;
      const { retryInMs, ...wanted } = givenUp || status === 'discarding' ? afterGivenUp : owed;
      const { nextAttemptAt, startedFence, ...row } = after.get(id)!;
      expect({ ...row, exhausted: exhausted.get(id) }, JSON.stringify(attempt)).toEqual(wanted);
      expect(startedFence).toBeNull();
      if (wanted.status !== 'pending') expect(nextAttemptAt).toBeNull();
      else if (retryInMs === null) expect(nextAttemptAt).toEqual(before.get(id)!.nextAttemptAt);
      else
        expect(Math.abs(+nextAttemptAt! - startedAt - retryInMs)).toBeLessThan(
          SAME_MS + Date.now() - startedAt,
        );
    });
  });

  it('writes nothing for an owner that has lost the endpoint, nor for what was started again since', async () => {
    await bed.insertEndpoints([{ ...IN_SERVICE, id: 'whe_lost' }]);
    const deliveries = withIds('dlv_lost', [
      { ...PENDING, endpointId: 'whe_lost', startedFence: Number(FENCE) },
      { ...PENDING, endpointId: 'whe_lost', startedFence: Number(FENCE) + 1 },
    ]);
    await bed.insertDeliveries(deliveries);
    const attempts = deliveries.map(({ id: deliveryId, endpointId, countedAttempts }) =>
      judged(
        bed.config,
        attemptOf({ deliveryId, endpointId, countedAttempts, outcome: 'delivered', fence: FENCE }),
      ),
    );
    expect(await bed.deliveries.record(bed.manager, 'another worker', attempts)).toEqual([]);
    const recorded = await bed.deliveries.record(bed.manager, OWNER, attempts);
    expect(recorded.map(({ deliveryId }) => deliveryId)).toEqual([deliveries[0]!.id]);
    const log = await bed.pool.query(
      `SELECT delivery_id FROM webhook_attempts WHERE endpoint_id = 'whe_lost'`,
    );
    expect(log.rows).toEqual([{ delivery_id: deliveries[0]!.id }]);
  });
});

describe('the claim', () => {
  it('starts what is due, kept and not in flight, at endpoints that take attempts, and the sweep finds these (D31, D32)', async () => {
    const endpoints = withIds('whe_claim', endpointStates()).map((row) => ({ ...row, discards: true }));
    await bed.insertEndpoints(endpoints);
    const deliveries: DeliveryRow[] = withIds(
      'dlv_claim',
      endpoints.flatMap(({ id: endpointId }) =>
        STATUSES.flatMap((status) =>
          BOTH.flatMap((givenUp) =>
            BOTH.flatMap((due) =>
              [null, Number(FENCE) - 1, Number(FENCE)].map((startedFence) => ({
                ...{ ...PENDING, endpointId, status, givenUp, due, startedFence },
              })),
            ),
          ),
        ),
      ),
    );
    await bed.insertDeliveries(deliveries);
    const due = await bed.deliveries.listEndpointsDue(OWNER, 'whe_claim', 1_000);
    const claimed = await bed.deliveries.claim(
      OWNER,
      endpoints.map(({ id: endpointId }) => ({ endpointId, fence: FENCE, free: 16 })),
    );
    for (const { id, ...state } of endpoints) {
      const claimable = deliveries.filter(
        (row) =>
          row.endpointId === id &&
          takesAttempts(state) &&
          row.status === 'pending' &&
          !row.givenUp &&
          row.due &&
          row.startedFence !== Number(FENCE),
      );
      const what = JSON.stringify(state);
      expect(due.includes(id), what).toBe(claimable.length > 0);
      const { deliveries: started } = claimed.get(id)!;
      expect(started.map((each) => each.id).sort(), what).toEqual(claimable.map((row) => row.id));
      // Of an owner before: that attempt was interrupted.
      for (const { id: deliveryId, interruptedAgoMs } of started) {
        const { startedFence } = claimable.find((row) => row.id === deliveryId)!;
        expect(interruptedAgoMs === null).toBe(startedFence === null);
      }
    }
  });

  it('starts as many as are asked for, the oldest first, and each once', async () => {
    await bed.insertEndpoints([{ ...IN_SERVICE, id: 'whe_limit' }]);
    await bed.insertDeliveries(
      withIds(
        'dlv_limit',
        Array.from({ length: 5 }, () => ({ ...PENDING, endpointId: 'whe_limit', due: true })),
      ),
    );
    const claim = async (): Promise<string[]> => {
      const claims = [{ endpointId: 'whe_limit', fence: FENCE, free: 2 }];
      const claimed = await bed.deliveries.claim(OWNER, claims);
      return claimed.get('whe_limit')!.deliveries.map(({ id }) => id);
    };
    const ids = [0, 1, 2, 3, 4].map((nth) => `dlv_limit_000${nth}`);
    expect([await claim(), await claim(), await claim()]).toEqual([
      ids.slice(0, 2),
      ids.slice(2, 4),
      ids.slice(4),
    ]);
  });

  it('starts nothing under a lease that has lapsed, or is another’s', async () => {
    await bed.insertEndpoints(['whe_lapsed', 'whe_taken', 'whe_held'].map((id) => ({ ...IN_SERVICE, id })));
    await bed.insertDeliveries(
      ['whe_lapsed', 'whe_taken', 'whe_held'].map((endpointId) => ({
        ...PENDING,
        ...{ id: `dlv_${endpointId}`, endpointId, due: true },
      })),
    );
    await bed.pool.query(`
      UPDATE webhook_endpoint_leases SET until = now() - interval '1 ms' WHERE endpoint_id = 'whe_lapsed';
      UPDATE webhook_endpoint_leases SET fence = fence + 1, owner = 'another' WHERE endpoint_id = 'whe_taken'`);
    const claims = ['whe_lapsed', 'whe_taken', 'whe_held'].map((endpointId) => ({
      endpointId,
      fence: FENCE,
      free: 1,
    }));
    expect([...(await bed.deliveries.claim(OWNER, claims)).keys()]).toEqual(['whe_held']);
  });
});
