import { expect } from 'vitest';
import type { SimulatorState as ZenditState } from '../../simulators/zendit/simulator.js';
import { BOOK_CHECKS } from '../../src/reconciliation/index.js';
import { eventually, type TestDatabase } from '../harness/index.js';
import { breachesOf } from '../reconciliation/whole-books.js';
import { type LiveService, NEEDS_REVIEW_AFTER_MS } from './live-service.js';

/** Maximum time until everything has ended or support was alerted. */
const SETTLE_MS = 120_000;
const OPEN = `status IN ('pending', 'processing', 'canceling')`;

interface OpenRow {
  readonly id: string;
  readonly status: string;
  /** It is listed for review and has an alert. */
  readonly told: boolean;
}

/**
 * Waits until everything of these partners has ended or support was alerted about it. Support then resolves the rest.
 * @throws Error that names what is stuck
 */
export async function everythingEnds(service: LiveService, partnerIds: readonly string[]): Promise<number> {
  const { pool } = service.database;
  const listOpen = async (): Promise<readonly OpenRow[]> =>
    (
      await pool.query<OpenRow>(
        `SELECT w.*, EXISTS (SELECT 1 FROM alerts a WHERE a.subject_id = w.id AND a.type LIKE '%.needs_review')
           AND EXISTS (SELECT 1 FROM provider_placements p WHERE p.provider_reference = w.reference
                         AND p.placements > 1 OR w.since <= now() - interval '${NEEDS_REVIEW_AFTER_MS} ms') AS told
         FROM (SELECT id, status, provider_reference AS reference, coalesce(cancel_requested_at, created_at) AS since
               FROM orders WHERE partner_id = ANY($1) AND ${OPEN}
               UNION ALL SELECT id, status, provider_reference, created_at
               FROM topups WHERE partner_id = ANY($1) AND ${OPEN}) w`,
        [partnerIds],
      )
    ).rows;
  const orStuck = (wait: Promise<unknown>) =>
    wait.catch(async () => {
      throw new Error(`stuck: ${JSON.stringify(await listOpen())}`);
    });
  await orStuck(eventually('', async () => (await listOpen()).every(({ told }) => told), SETTLE_MS));
  const left = await listOpen();
  for (const { id } of left) await orStuck(settleBySupport(service, id));
  return left.length;
}

/** Resolves, as support, what the provider leaves open, which must always be possible. */
async function settleBySupport({ admin, database }: LiveService, id: string): Promise<void> {
  const isTopup = id.startsWith('top_');
  const path = `/internal/v1/${isTopup ? 'topups' : 'orders'}/${id}/reconcile`;
  await eventually(
    '',
    async () => {
      for (const action of [isTopup ? 'mark_completed' : 'mark_issued', 'mark_failed']) {
        const { status, text } = await admin.post(path, { action, note: 'the scenario is over' });
        expect([200, 409, 503], text).toContain(status);
        if (status === 200) return true;
      }
      const table = isTopup ? 'topups' : 'orders';
      const { rows } = await database.pool.query(`SELECT 1 FROM ${table} WHERE id = $1 AND ${OPEN}`, [id]);
      return rows.length === 0;
    },
    SETTLE_MS,
  );
}

/** Checks the invariants of `npm run reconcile` with the same statements, over the whole database. */
export async function expectBooksToAgree({ pool }: TestDatabase): Promise<void> {
  for (const check of BOOK_CHECKS)
    expect(await breachesOf(pool, check, SETTLE_MS * 4), check.check).toEqual([]);
}

interface EndedRow {
  id: string;
  provider: string;
  provider_reference: string;
  status: string;
  quantity: number;
  /** Null for a package of fixed days. */
  days: number | null;
  issued: number;
  canceled: number;
  failed_in_silence: boolean;
  cancel_ended_by_support: boolean;
  topup_ended_by_support: boolean;
  /** After a repeated placement, the number of placements that may have taken effect. Otherwise 0. */
  placements: number;
  /** For debugging a failure. */
  history: object;
}

/** Expects one purchase at the provider for each issued or completed reference, and none for a failed one. */
export async function expectOnePurchasePerReference(
  service: LiveService,
  partnerIds: readonly string[],
): Promise<void> {
  const [access, zendit] = [service.esimAccess.state(), service.zendit.state()];
  expect([zendit.duplicatePosts, zendit.duplicateRefunds], 'repeated posts').toEqual([0, 0]);
  await expectSupportToKnowOfRepeats(service);
  const zenditSold = countZendit(zendit);
  for (const row of await readEnded(service.database, partnerIds)) {
    const isAccess = row.provider === 'esim_access';
    const sold = isAccess ? access.purchases : zenditSold.sold;
    const back = isAccess ? access.canceled : zenditSold.refunded;
    const applied = isAccess ? access.topups : zenditSold.sold;
    const there = row.quantity === 0 ? applied : sold;
    const count = there[row.provider_reference] ?? 0;
    const units = Math.max(1, row.quantity);
    // A repeated placement may have been charged twice, and support was alerted. The count must not exceed the sent
    // placements, nor be less than what the partner got, unless support overruled the provider's data.
    if (row.placements > 0) {
      expect(count, describe(row)).toBeLessThanOrEqual(row.placements);
      const isBySupport = row.failed_in_silence || row.topup_ended_by_support;
      if (!isBySupport) expect(count, describe(row)).toBeGreaterThanOrEqual(row.issued);
      if (!isBySupport && row.status === 'failed') expect(count, describe(row)).toBe(0);
    }
    // If support failed it while the provider did not respond, it may have been bought anyway.
    else if (row.failed_in_silence || row.topup_ended_by_support)
      expect(count, describe(row)).toBeLessThanOrEqual(units);
    else expect(count, describe(row)).toBe(row.issued);
    if (isAccess && count > 0 && row.days !== null)
      expect(access.days[row.provider_reference], describe(row)).toBe(row.days);
    // For a cancellation that support ended, the provider's state may differ.
    if (row.quantity > 0 && !row.cancel_ended_by_support)
      expect(back[row.provider_reference] ?? 0, describe(row)).toBe(row.canceled);
  }
}

/** Checks that every second placement raised an alert. The table itself rejects a third placement. */
async function expectSupportToKnowOfRepeats({ database }: LiveService): Promise<void> {
  const { rows } = await database.pool.query(
    `SELECT p.* FROM provider_placements p
     LEFT JOIN (SELECT id, provider_reference FROM orders UNION ALL SELECT id, provider_reference FROM topups) w
       USING (provider_reference)
     WHERE p.placements = 2 AND NOT EXISTS (
       SELECT 1 FROM alerts a WHERE a.subject_id = w.id AND a.details ->> 'what' = 'placed_again')`,
  );
  expect(rows, 'repeated without support knowing').toEqual([]);
}

function describe(row: EndedRow): string {
  return `purchases of ${JSON.stringify(row)}`;
}

const PLACEMENTS_IF_REPEATED = `(SELECT CASE WHEN max(p.placements) > 1 THEN sum(p.placements) ELSE 0 END::int
  FROM provider_placements p WHERE p.provider_reference = o.provider_reference AND p.operation <> 'cancel')`;

/** Reads orders, and top-ups as rows of quantity 0 that issue one when completed. */
async function readEnded(
  { pool }: TestDatabase,
  partnerIds: readonly string[],
): Promise<readonly EndedRow[]> {
  const { rows } = await pool.query<EndedRow>(
    `SELECT o.id, o.provider, o.provider_reference, o.status, o.quantity, o.days, o.quantity_issued AS issued,
            (SELECT count(*)::int FROM esims e WHERE e.order_id = o.id AND e.status = 'canceled') AS canceled,
            o.status = 'failed' AND EXISTS (SELECT 1 FROM audit_log a
              WHERE a.subject_id = o.id AND a.details ->> 'action' = 'mark_failed'
                AND a.details ->> 'upstream' = 'no answer') AS failed_in_silence,
            EXISTS (SELECT 1 FROM audit_log a WHERE a.subject_id = o.id AND a.details ->> 'action' LIKE 'mark_%'
              AND a.details ->> 'upstream' NOT LIKE '%provisioned%') AS cancel_ended_by_support,
            false AS topup_ended_by_support, ${PLACEMENTS_IF_REPEATED} AS placements,
            jsonb_build_object('created', created_at, 'placed', upstream_placed_at, 'ended', updated_at,
                               'attempts', upstream_attempts, 'failure', failure_code) AS history
     FROM orders o WHERE o.partner_id = ANY($1)
     UNION ALL
     SELECT id, provider, provider_reference, status, 0, days, (status = 'completed')::int, 0, false, false,
            EXISTS (SELECT 1 FROM audit_log a WHERE a.subject_id = o.id AND a.details ->> 'action' LIKE 'mark_%'),
            ${PLACEMENTS_IF_REPEATED},
            jsonb_build_object('created', created_at, 'placed', upstream_placed_at, 'ended', updated_at,
                               'attempts', attempts, 'failure', failure_code)
     FROM topups o WHERE partner_id = ANY($1)`,
    [partnerIds],
  );
  return rows;
}

function countZendit({ purchases }: ZenditState): {
  sold: Record<string, number>;
  refunded: Record<string, number>;
} {
  const sold: Record<string, number> = {};
  const refunded: Record<string, number> = {};
  for (const [id, { status, refund, topupOf }] of Object.entries(purchases)) {
    if (status === 'FAILED') continue;
    // The id of an order's purchase is the reference and a number.
    const reference = topupOf === null ? id.slice(0, id.lastIndexOf('-')) : id;
    sold[reference] = (sold[reference] ?? 0) + 1;
    if (refund === 'DONE') refunded[reference] = (refunded[reference] ?? 0) + 1;
  }
  return { sold, refunded };
}
