import { pino } from 'pino';
import type { EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Alerts } from '../../src/alerts/index.js';
import type { AuditLog } from '../../src/audit/index.js';
import { ATTEMPT_OUTCOMES, DELIVERY_KINDS } from '../../src/webhooks/delivery.js';
import { FULL_WINDOW, takesAttempts } from '../../src/webhooks/delivery-rules.js';
import { EndpointStatsRepository } from '../../src/webhooks/endpoint-stats.repository.js';
import { AttemptRecorder } from '../../src/webhooks/worker/attempt-recorder.js';
import {
  type AttemptOutcomeRow,
  DeliveriesRepository,
  type StartedDelivery,
} from '../../src/webhooks/worker/deliveries.repository.js';
import type { EndpointLeases, OwnedEndpoint } from '../../src/webhooks/worker/endpoint-leases.js';
import type { WebhookMetrics } from '../../src/webhooks/worker/webhook-metrics.js';
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
/** Maximum difference of two clocks in one statement, in milliseconds. */
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
  it('applies the delivery rules to every delivery with an attempt in progress (D30)', async () => {
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

  it('writes nothing for a former owner of the endpoint, and nothing for a restarted delivery', async () => {
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

describe('a batch of attempts that end together', () => {
  /**
   * A recorder without notifications.
   * @param owned the worker's knowledge of the endpoint
   */
  function recorderWith(owned: Partial<OwnedEndpoint> | undefined): AttemptRecorder {
    const nothing = (): undefined => undefined;
    return new AttemptRecorder(
      bed.manager,
      bed.transactions,
      bed.deliveries,
      { owner: OWNER, get: () => owned } as unknown as EndpointLeases,
      { record: nothing } as unknown as AuditLog,
      { raise: nothing } as unknown as Alerts,
      { countAttempts: nothing, countBlocks: nothing } as unknown as WebhookMetrics,
      bed.config,
      pino({ level: 'silent' }),
    );
  }

  it('leaves the endpoint blocked with a count of 0 when a success ended after the failure that blocked it (D31)', async () => {
    await bed.insertEndpoints([{ ...IN_SERVICE, id: 'whe_both' }]);
    const [first, second] = withIds('dlv_both', [PENDING, PENDING]).map((row) => ({
      ...{ ...row, endpointId: 'whe_both', startedFence: Number(FENCE), countedAttempts: 5 },
    }));
    await bed.insertDeliveries([first!, second!]);
    const attempts = [
      attemptOf({ ...second!, deliveryId: second!.id, fence: FENCE, outcome: 'delivered', endedAt: 2 }),
      attemptOf({ ...first!, deliveryId: first!.id, fence: FENCE, outcome: 'failed', endedAt: 1 }),
    ];
    await recorderWith(undefined).record(attempts);
    const { rows } = await bed.pool.query(
      `SELECT blocked_until > now() AS blocked, consecutive_blocks FROM webhook_endpoints WHERE id = 'whe_both'`,
    );
    expect(rows).toEqual([{ blocked: true, consecutive_blocks: 0 }]);
  });

  it('resets the count of a blocked endpoint to 0 when one is a success (D31)', async () => {
    await bed.insertEndpoints([{ ...IN_SERVICE, id: 'whe_again', consecutiveBlocks: 2 }]);
    const row = { ...PENDING, id: 'dlv_again', endpointId: 'whe_again', startedFence: Number(FENCE) };
    await bed.insertDeliveries([row]);
    const success = attemptOf({ ...row, deliveryId: row.id, fence: FENCE, outcome: 'delivered' });
    await recorderWith({ consecutiveBlocks: 2, window: FULL_WINDOW, slowStart: null }).record([success]);
    const { rows } = await bed.pool.query(
      `SELECT enabled, consecutive_blocks FROM webhook_endpoints WHERE id = 'whe_again'`,
    );
    expect(rows).toEqual([{ enabled: true, consecutive_blocks: 0 }]);
  });
});

describe('the first failure after the last success', () => {
  /** When each attempt ended, in the order in which they are recorded; then whether the endpoint fails. */
  it.each([
    [
      'is forgotten after a success that ended later, and was recorded first',
      'delivered 2',
      'failed 1',
      false,
    ],
    ['is kept after a success that ended earlier, and was recorded later', 'failed 2', 'delivered 1', true],
    ['ends with a success', 'failed 1', 'delivered 2', false],
    ['begins after a success', 'delivered 1', 'failed 2', true],
  ])('%s', async (_name, one, other, fails) => {
    const endpointId = `whe_${one}_${other}`.replaceAll(' ', '_');
    await bed.insertEndpoints([{ ...IN_SERVICE, id: endpointId }]);
    const rows = withIds(`dlv_${endpointId}`, [PENDING, PENDING]).map((row) => ({
      ...{ ...row, endpointId, startedFence: Number(FENCE) },
    }));
    await bed.insertDeliveries(rows);
    const start = performance.now() - 10_000;
    for (const [index, given] of [one, other].entries()) {
      const [outcome, second] = given.split(' ') as ['delivered' | 'failed', string];
      const attempt = attemptOf({
        ...{ ...rows[index]!, deliveryId: rows[index]!.id, fence: FENCE, outcome },
        endedAt: start + Number(second) * 1_000,
      });
      await bed.deliveries.record(bed.manager, OWNER, [judged(bed.config, attempt)]);
    }
    const figures = await new EndpointStatsRepository(bed.manager).figuresOf([endpointId]);
    expect(figures.get(endpointId)!.failing !== null).toBe(fails);
  });
});

describe('the claim', () => {
  it('starts due deliveries that are neither discarded nor in flight, at available endpoints, as the sweep finds them (D31, D32)', async () => {
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
      // A former owner started the attempt, so it counts as interrupted.
      for (const { id: deliveryId, interruptedAgoMs } of started) {
        const { startedFence } = claimable.find((row) => row.id === deliveryId)!;
        expect(interruptedAgoMs === null).toBe(startedFence === null);
      }
    }
  });

  it('starts as many as requested, oldest first, and each once', async () => {
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

  it('starts nothing under a lease that has expired or belongs to another worker', async () => {
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

describe('the phase of an attempt', () => {
  const phases = async (): Promise<readonly (string | null)[]> => {
    const { rows } = await bed.pool.query<{ current_phase: string | null }>(
      `SELECT current_phase FROM webhook_deliveries_open WHERE endpoint_id = 'whe_phase' ORDER BY id`,
    );
    return rows.map((row) => row.current_phase);
  };

  it('is stored without waiting, only under the fence of its start, and ends with its attempt', async () => {
    const inFlight = { ...PENDING, endpointId: 'whe_phase', due: true, startedFence: Number(FENCE) };
    await bed.insertEndpoints([{ ...IN_SERVICE, id: 'whe_phase' }]);
    const deliveries = withIds('dlv_phase', [
      inFlight,
      { ...inFlight, startedFence: Number(FENCE) - 1 },
      inFlight,
    ]);
    await bed.insertDeliveries(deliveries);
    const locked = deliveries[2]!.id;
    const ending = await bed.pool.connect();
    try {
      await ending.query('BEGIN');
      await ending.query('SELECT FROM webhook_deliveries WHERE id = $1 FOR UPDATE', [locked]);
      const given = deliveries.map(({ id }) => ({ id, fence: FENCE, phase: 'tls' as const }));
      expect(await bed.deliveries.storePhases(given)).toEqual(new Set([deliveries[0]!.id]));
      expect(await phases()).toEqual(['tls', null, null]);
    } finally {
      await ending.query('ROLLBACK');
      ending.release();
    }
    const { id: deliveryId, endpointId, countedAttempts } = deliveries[0]!;
    const attempt = { deliveryId, endpointId, countedAttempts, outcome: 'failed' as const, fence: FENCE };
    await bed.deliveries.record(bed.manager, OWNER, [judged(bed.config, attemptOf(attempt))]);
    expect(await phases()).toEqual([null, null, null]);
  });
});

describe('a pair of claim and record statements', () => {
  const ENDPOINTS = 24;
  /** Deliveries of a disabled endpoint, which no statement here should read. */
  const WAITING = 5_000;
  /** Each delivery is found, locked and written, including its earlier row versions. */
  const MAX_ROWS = 12 * ENDPOINTS;
  /** From the sixth execution on, a connection keeps its plan. */
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
    // autovacuum does this in a quiet minute.
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

  /** Rows of open deliveries that this connection has read, in addition to the reported ones. */
  async function rowsRead(manager: EntityManager): Promise<number> {
    const [read] = await manager.query<[{ rows: number }]>(
      `SELECT (seq_tup_read + idx_tup_fetch)::int AS rows FROM pg_stat_xact_user_tables WHERE relname = 'webhook_deliveries_open'`,
    );
    return read.rows;
  }

  /** The number of rows that each statement reads, both on one connection. */
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

  /** The number of scans of each index of the queue so far. */
  async function scans(): Promise<Record<string, number>> {
    const { rows } = await bed.pool.query<{ name: string; scans: number }>(
      `SELECT indexrelname AS name, idx_scan::int AS scans FROM pg_stat_user_indexes WHERE relname = 'webhook_deliveries_open'`,
    );
    return Object.fromEntries(rows.map(({ name, scans }) => [name, scans]));
  }

  it('reads no rows that arrived after PostgreSQL had found the queue empty', async () => {
    const before = await scans();
    const rows = await claimAndRecord(ENDPOINTS);
    const after = await scans();
    // Another index also contains the ids, but would be scanned completely to find one.
    const used = Object.keys(after).filter((name) => after[name] !== before[name]);
    expect(used.sort()).toEqual(['webhook_deliveries_due', 'webhook_deliveries_open_pkey']);
    const all = Object.values(rows);
    expect(Math.min(...all), JSON.stringify(rows)).toBeGreaterThanOrEqual(ENDPOINTS);
    expect(Math.max(...all), JSON.stringify(rows)).toBeLessThan(MAX_ROWS);
  });

  /** Every second delivery succeeds, and the others are retried. */
  function toOutcome(
    { id: deliveryId, endpointId, fence, countedAttempts }: StartedDelivery,
    nth: number,
  ): AttemptOutcomeRow {
    const outcome = nth % 2 === 0 ? 'delivered' : 'failed';
    return judged(bed.config, attemptOf({ deliveryId, endpointId, fence, countedAttempts, outcome }));
  }
});
