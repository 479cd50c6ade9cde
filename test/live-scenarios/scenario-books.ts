import { expect } from 'vitest';
import type { SimulatorState as EsimAccessState } from '../../simulators/esim-access/control.js';
import type { SimulatorState as ZenditState } from '../../simulators/zendit/simulator.js';
import { BOOK_CHECKS } from '../../src/reconciliation/index.js';
import { eventually, type TestDatabase } from '../harness/index.js';
import type { LiveService } from './live-service.js';

/** Beyond this nothing is late any more, it is stuck. */
const SETTLE_MS = 120_000;
const OPEN = `status IN ('pending', 'processing', 'canceling')`;

/** Waits until nothing of these partners is open. @throws Error that names what is stuck */
export async function everythingEnds({ pool }: TestDatabase, partnerIds: readonly string[]): Promise<void> {
  const listOpen = async () =>
    (
      await pool.query<{ id: string }>(
        `SELECT id, status, last_error FROM orders WHERE partner_id = ANY($1) AND ${OPEN}
         UNION ALL SELECT id, status, NULL FROM topups WHERE partner_id = ANY($1) AND ${OPEN}`,
        [partnerIds],
      )
    ).rows;
  await eventually('', async () => (await listOpen()).length === 0, SETTLE_MS).catch(async () => {
    throw new Error(`stuck: ${JSON.stringify(await listOpen())}`);
  });
}

/** The invariants of `npm run reconcile`, by the same statements, over the whole database. */
export async function expectBooksToAgree({ pool }: TestDatabase): Promise<void> {
  for (const { check, query, parameters } of BOOK_CHECKS) {
    const { rows } = await pool.query(query, [
      ...(parameters?.({ needsReviewAfterMs: SETTLE_MS * 2 }) ?? []),
    ]);
    expect(rows, check).toEqual([]);
  }
}

interface EndedRow {
  id: string;
  provider: string;
  provider_reference: string;
  status: string;
  quantity: number;
  issued: number;
  canceled: number;
  failed_in_silence: boolean;
  cancel_ended_by_support: boolean;
  /** For whoever has to find out what happened. */
  history: object;
}

/** One purchase upstream for each reference that was issued or applied, and none for one that failed. */
export async function expectOnePurchasePerReference(
  service: LiveService,
  partnerIds: readonly string[],
): Promise<void> {
  const [access, zendit] = [
    await service.esimAccess.state<EsimAccessState>(),
    await service.zendit.state<ZenditState>(),
  ];
  expect([zendit.duplicatePosts, zendit.duplicateRefunds], 'repeated posts').toEqual([0, 0]);
  const zenditSold = countZendit(zendit);
  for (const row of await readEnded(service.database, partnerIds)) {
    const isAccess = row.provider === 'esim_access';
    const sold = isAccess ? access.purchases : zenditSold.sold;
    const back = isAccess ? access.canceled : zenditSold.refunded;
    const applied = isAccess ? access.topups : zenditSold.sold;
    const there = row.quantity === 0 ? applied : sold;
    const count = there[row.provider_reference] ?? 0;
    // What support ended as failed while the upstream was silent may have been bought all the same: its to settle.
    if (row.failed_in_silence) expect(count, describe(row)).toBeLessThanOrEqual(row.quantity);
    else expect(count, describe(row)).toBe(row.issued);
    // And of a cancellation that it ended the upstream may say otherwise.
    if (row.quantity > 0 && !row.cancel_ended_by_support)
      expect(back[row.provider_reference] ?? 0, describe(row)).toBe(row.canceled);
  }
}

function describe(row: EndedRow): string {
  return `purchases of ${JSON.stringify(row)}`;
}

/** Orders, and top-ups as rows of quantity 0 that issue one when they are completed. */
async function readEnded(
  { pool }: TestDatabase,
  partnerIds: readonly string[],
): Promise<readonly EndedRow[]> {
  const { rows } = await pool.query<EndedRow>(
    `SELECT o.id, o.provider, o.provider_reference, o.status, o.quantity, o.quantity_issued AS issued,
            (SELECT count(*)::int FROM esims e WHERE e.order_id = o.id AND e.status = 'canceled') AS canceled,
            o.status = 'failed' AND EXISTS (SELECT 1 FROM audit_log a
              WHERE a.subject_id = o.id AND a.details ->> 'action' = 'mark_failed'
                AND a.details ->> 'upstream' = 'no answer') AS failed_in_silence,
            EXISTS (SELECT 1 FROM audit_log a WHERE a.subject_id = o.id AND a.details ->> 'action' LIKE 'mark_%'
              AND a.details ->> 'upstream' NOT LIKE '%provisioned%') AS cancel_ended_by_support,
            jsonb_build_object('created', created_at, 'placed', upstream_placed_at, 'ended', updated_at,
                               'attempts', upstream_attempts, 'failure', failure_code) AS history
     FROM orders o WHERE o.partner_id = ANY($1)
     UNION ALL
     SELECT id, provider, provider_reference, status, 0, (status = 'completed')::int, 0, false, false,
            jsonb_build_object('created', created_at, 'placed', upstream_placed_at, 'ended', updated_at,
                               'attempts', attempts, 'failure', failure_code)
     FROM topups WHERE partner_id = ANY($1)`,
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
    // A purchase of an order has the reference and a number.
    const reference = topupOf === null ? id.slice(0, id.lastIndexOf('-')) : id;
    sold[reference] = (sold[reference] ?? 0) + 1;
    if (refund === 'DONE') refunded[reference] = (refunded[reference] ?? 0) + 1;
  }
  return { sold, refunded };
}
