import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/index.js';
import { ATTEMPT_OUTCOMES, type AttemptOutcome, DELIVERY_KINDS } from '../../src/webhooks/delivery.js';
import {
  afterAttempt,
  afterDelivered,
  afterExhausted,
  claimLimit,
  DOCUMENT_RULES,
  type EndedAttempt,
  type EndpointState,
  isClaimable,
  slowStart,
  transitionsOf,
} from '../../src/webhooks/delivery-rules.js';
import { DeliveryJobsRepository } from '../../src/webhooks/worker/delivery-jobs.repository.js';
import {
  type AffectedEndpoints,
  EndpointTransitionsRepository,
} from '../../src/webhooks/worker/endpoint-transitions.repository.js';
import type { FinishedAttempt } from '../../src/webhooks/worker/attempt-result.js';
import { OutcomesRepository } from '../../src/webhooks/worker/outcomes.repository.js';
import { testEnvironment } from '../harness/index.js';
import {
  attemptOf,
  CAP,
  DeliveryRulesBed,
  type DeliveryRow,
  endpointStates,
  IN_SERVICE,
  OWNER,
  withIds,
} from './delivery-rules-bed.js';

const STATUSES = ['pending', 'discarding', 'delivered', 'failed', 'discarded'] as const;
/** Those of a delivery that may have an attempt under way. */
const OPEN_STATUSES = ['pending', 'discarding'] as const;
const BOTH = [false, true];
/** Milliseconds by which two clocks of one statement may differ. */
const SAME_MS = 5;

let bed: DeliveryRulesBed;

beforeAll(async () => {
  bed = await DeliveryRulesBed.open();
});
afterAll(() => bed.close());

describe('the table of the document', () => {
  it('is what the settings are when nobody sets them (D36)', () => {
    const { webhooks } = loadConfig(testEnvironment('postgres://127.0.0.1/none', {}));
    expect(webhooks).toMatchObject(DOCUMENT_RULES);
  });
});

describe('the statement that records attempts', () => {
  it('does what `afterAttempt` says, in every state of a delivery and for every outcome (D30)', async () => {
    await bed.insertEndpoints([{ ...IN_SERVICE, id: 'whe_record', discards: true }]);
    const states = DELIVERY_KINDS.flatMap((kind) =>
      OPEN_STATUSES.flatMap((status) =>
        BOTH.flatMap((givenUp) =>
          [0, 1, 2, 3, 4, 5].flatMap((countedAttempts) =>
            [0, 1, 2].flatMap((interruptions) =>
              ATTEMPT_OUTCOMES.map((outcome) => ({
                ...{ kind, status, givenUp, countedAttempts, interruptions, outcome },
                ...{ endpointId: 'whe_record', leased: true },
              })),
            ),
          ),
        ),
      ),
    );
    const deliveries = withIds('dlv_record', states);
    await bed.insertDeliveries(deliveries);
    const before = await nextAttempts();
    const outcomes = new OutcomesRepository(bed.config);
    const recorded = await bed.transactions.run((tx) =>
      outcomes.record(tx.manager, OWNER, deliveries.toReversed().map(toAttempt)),
    );
    const after = await nextAttempts();
    const byId = new Map(recorded.map((row) => [row.deliveryId, row]));
    expect(byId.size).toBe(states.length);
    for (const { id, outcome, ...state } of deliveries) {
      const { exhausted, endedAtMs } = byId.get(id)!;
      const { nextAttemptAt, ...row } = after.get(id)!;
      const expected = afterAttempt(bed.config.webhooks, state, outcome);
      const { nextAttempt: wanted, ...rest } = expected;
      expect({ ...row, exhausted }, `${JSON.stringify(state)} ${outcome}`).toEqual(rest);
      if (wanted === null) expect(nextAttemptAt).toBeNull();
      else if (wanted === 'unchanged') expect(nextAttemptAt).toEqual(before.get(id)!.nextAttemptAt);
      else expect(Math.abs(+nextAttemptAt! - endedAtMs - wanted)).toBeLessThan(SAME_MS);
    }
  });

  it('records, of two attempts of one delivery in a batch, the one that holds the lease (D30)', async () => {
    const delivery = {
      ...({ id: 'dlv_twice', endpointId: 'whe_record', kind: 'event', status: 'pending' } as const),
      ...{ givenUp: false, countedAttempts: 0, interruptions: 0, leased: true },
    };
    await bed.insertDeliveries([delivery]);
    await bed.pool.query(`UPDATE webhook_deliveries SET fence = 10 WHERE id = 'dlv_twice'`);
    const attempts = (['10', '9'] as const).map((fence) => ({
      ...toAttempt({ ...delivery, outcome: fence === '10' ? 'failed' : 'delivered' }),
      fence,
    }));
    const recorded = await bed.transactions.run((tx) =>
      new OutcomesRepository(bed.config).record(tx.manager, OWNER, attempts),
    );
    expect(recorded).toMatchObject([{ deliveryId: 'dlv_twice', outcome: 'failed', number: 1 }]);
  });

  it('records alone what changes no endpoint, and leaves to a transaction what that would lock one for (D31, D40)', async () => {
    const whats = ['delivered', 'failed', 'timed out', 'exhausting'] as const;
    const cases = endpointStates([null, 1, 4], [0, 3]).flatMap((state) =>
      whats.map((what) => ({ ...state, what })),
    );
    const endpoints = withIds('whe_alone', cases);
    await bed.insertEndpoints(endpoints);
    const deliveries = endpoints.map(({ id: endpointId, what }, nth) => ({
      ...({
        id: `dlv_alone_${nth}`,
        endpointId,
        kind: 'event',
        status: 'pending',
        givenUp: false,
        leased: true,
      } as const),
      ...{ countedAttempts: what === 'exhausting' ? 5 : 0, interruptions: 0, what },
    }));
    await bed.insertDeliveries(deliveries);
    const affectedBy = (some: typeof deliveries): AffectedEndpoints => {
      const idsOf = (...of: (typeof whats)[number][]): string[] =>
        some.filter(({ what }) => of.includes(what)).map(({ endpointId }) => endpointId);
      return {
        exhausting: idsOf('exhausting'),
        succeeding: idsOf('delivered'),
        failing: idsOf('failed', 'timed out', 'exhausting'),
        timedOut: idsOf('timed out'),
      };
    };
    const attempts = deliveries.map((delivery) =>
      toAttempt({ ...delivery, outcome: delivery.what === 'delivered' ? 'delivered' : 'failed' }),
    );
    const affected = affectedBy(deliveries);
    const recorded = await new OutcomesRepository(bed.config).record(bed.manager, OWNER, attempts, affected);
    const alone = new Set(recorded.map(({ deliveryId }) => deliveryId));
    const transitions = new EndpointTransitionsRepository(bed.config);
    for (const delivery of deliveries) {
      const locks = await bed.transactions.run((tx) => transitions.lock(tx, affectedBy([delivery])));
      const state = endpoints.find(({ id }) => id === delivery.endpointId);
      expect(alone.has(delivery.id), JSON.stringify(state)).toBe(!locks);
    }
    expect(alone.size).toBeGreaterThan(0);
    expect(alone.size).toBeLessThan(deliveries.length);
  });

  async function nextAttempts() {
    const { rows } = await bed.pool.query<{
      id: string;
      status: string;
      countedAttempts: number;
      interruptions: number;
      nextAttemptAt: Date | null;
    }>(
      `SELECT id, status, counted_attempts AS "countedAttempts", interruptions, next_attempt_at AS "nextAttemptAt"
       FROM webhook_deliveries WHERE id LIKE 'dlv_record%'`,
    );
    return new Map(rows.map(({ id, ...row }) => [id, row]));
  }
});

function toAttempt(delivery: DeliveryRow & { readonly outcome: AttemptOutcome }): FinishedAttempt {
  const { id: deliveryId, endpointId, countedAttempts, outcome } = delivery;
  return attemptOf({ deliveryId, endpointId, countedAttempts, outcome, fence: '1' });
}

describe('the statements that change endpoints', () => {
  const sequences = [1, 2, 3].flatMap((length) =>
    Array.from({ length: 3 ** length }, (_, n) =>
      Array.from(
        { length },
        (_, i) => (['delivered', 'exhausted', 'failed'] as const)[Math.floor(n / 3 ** i) % 3]!,
      ),
    ),
  );

  it('do for a batch what each of its attempts in turn would do: block, disable, reset (D31)', async () => {
    const cases = endpointStates([null, 4], [0, 3, 4]).flatMap((state) =>
      sequences.map((sequence) => ({ ...state, sequence })),
    );
    const endpoints = withIds('whe_batch', cases);
    await bed.insertEndpoints(endpoints);
    const attempts = endpoints.flatMap(({ id, sequence }) =>
      sequence.map((what, nth): EndedAttempt => ({
        ...{ endpointId: id, kind: 'event', endedAtMs: nth },
        ...{ outcome: what === 'delivered' ? 'delivered' : 'failed', exhausted: what === 'exhausted' },
      })),
    );
    const repository = new EndpointTransitionsRepository(bed.config);
    const { resetFirst, exhausted, resetLast } = transitionsOf(attempts);
    const blocked = await bed.transactions.run(async (tx) => {
      await repository.resetBlocks(tx, resetFirst);
      const rows = await repository.block(tx, exhausted);
      await repository.resetBlocks(tx, resetLast);
      return new Map(rows.map((row) => [row.id, row]));
    });
    const after = await bed.endpointsNow('whe_batch');
    for (const { id, sequence, ...before } of endpoints) {
      let state: EndpointState = before;
      let block: EndpointState | null = null;
      for (const what of sequence) {
        const next = what === 'exhausted' ? afterExhausted(bed.config.webhooks, state) : state;
        if (next !== state) block = next;
        state = what === 'delivered' ? afterDelivered(next) : next;
      }
      const what = `${JSON.stringify(before)} ${sequence.join()}`;
      expect(after.get(id), what).toEqual(state);
      const report = block && { disabled: !block.enabled, consecutiveBlocks: block.consecutiveBlocks };
      expect(blocked.get(id) ?? null, what).toEqual(report && expect.objectContaining(report));
    }
  });

  it('widen and narrow the window of a slow start as `slowStart` says (D32)', async () => {
    const cases = endpointStates([null, 1, 2, 3, 4, 5, CAP], [0]).flatMap((state) =>
      BOTH.flatMap((widenedLately) =>
        BOTH.flatMap((delivered) =>
          (['no', 'yes', 'by time-out'] as const).map((failure) => ({
            ...{ ...state, widenedLately, delivered },
            ...{ failed: failure !== 'no', timedOut: failure === 'by time-out' },
          })),
        ),
      ),
    );
    const endpoints = withIds('whe_slow', cases);
    await bed.insertEndpoints(endpoints);
    // The statement has its own time: what was widened just now must still be young in it.
    await bed.pool.query(
      `UPDATE webhook_endpoints SET ramp_widened_at = ramp_widened_at + interval '1 hour'
       WHERE id = ANY ($1)`,
      [endpoints.filter(({ widenedLately }) => widenedLately).map(({ id }) => id)],
    );
    const idsOf = (some: readonly { id: string }[]): string[] => some.map(({ id }) => id);
    const repository = new EndpointTransitionsRepository(bed.config);
    await bed.transactions.run((tx) =>
      repository.adjustSlowStart(tx, {
        succeeding: idsOf(endpoints.filter(({ delivered }) => delivered)),
        failing: idsOf(endpoints.filter(({ failed }) => failed)),
        timedOut: idsOf(endpoints.filter(({ timedOut }) => timedOut)),
      }),
    );
    const after = await bed.endpointsNow('whe_slow');
    for (const { id, ...state } of endpoints) {
      expect(after.get(id)?.window, JSON.stringify(state)).toBe(slowStart(bed.config.webhooks, state, state));
    }
  });
});

describe('the claim of the database', () => {
  it('takes what `isClaimable` allows, and the sweep finds the endpoints that have such (D31, D32)', async () => {
    const endpoints = withIds('whe_claim', endpointStates([null], [0])).map((row) => ({
      ...row,
      discards: true,
    }));
    await bed.insertEndpoints(endpoints);
    const deliveries = withIds(
      'dlv_claim',
      endpoints.flatMap(({ id: endpointId }) =>
        STATUSES.flatMap((status) =>
          BOTH.flatMap((givenUp) =>
            BOTH.flatMap((due) =>
              BOTH.map((leased) => ({
                ...{ endpointId, status, givenUp, due, leased },
                ...{ kind: 'event' as const, countedAttempts: 0, interruptions: 0 },
              })),
            ),
          ),
        ),
      ),
    );
    await bed.insertDeliveries(deliveries);
    // Leases of what is given up count in the window: another test has them.
    await bed.pool.query(
      `UPDATE webhook_deliveries SET lease_until = NULL WHERE id LIKE 'dlv_claim%' AND status <> 'pending'`,
    );
    const jobs = new DeliveryJobsRepository(bed.manager, bed.config);
    const swept = await jobs.listGroupsDue('whe_claim', 1_000);
    for (const { id, ...state } of endpoints) {
      const claimable = deliveries
        .filter((row) => row.endpointId === id && isClaimable(state, row))
        .map((row) => row.id);
      expect(swept.includes(id), JSON.stringify(state)).toBe(claimable.length > 0);
      const { items } = await jobs.claim(id, CAP);
      expect(items.map((item) => item.id).sort(), JSON.stringify(state)).toEqual(claimable);
    }
  });

  it('takes as many as `claimLimit` allows, whatever is under way at other workers (D34)', async () => {
    const cases = [null, 1, 2, 5, CAP, CAP + 4].flatMap((window) =>
      [0, 1, 4, CAP, CAP + 1].flatMap((inFlight) =>
        [1, 3, CAP * 2].map((asked) => ({ ...IN_SERVICE, window, inFlight, asked })),
      ),
    );
    const endpoints = withIds('whe_limit', cases);
    await bed.insertEndpoints(endpoints);
    await bed.insertDeliveries(
      withIds(
        'dlv_limit',
        endpoints.flatMap(({ id: endpointId, inFlight }) =>
          Array.from({ length: inFlight + CAP * 2 }, (_, nth) => ({
            ...{ endpointId, kind: 'event' as const, status: 'pending' as const, givenUp: false },
            ...{ countedAttempts: 0, interruptions: 0, due: true, leased: nth < inFlight },
          })),
        ),
      ),
    );
    const jobs = new DeliveryJobsRepository(bed.manager, bed.config);
    for (const { id, inFlight, asked, ...state } of endpoints) {
      const { items, more } = await jobs.claim(id, asked);
      const what = JSON.stringify({ ...state, inFlight, asked });
      expect(items.length, what).toBe(claimLimit(bed.config.webhooks, state, { asked, inFlight }));
      expect(more, what).toBe(true);
    }
  });
});
