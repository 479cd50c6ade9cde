import { expect } from 'vitest';
import { BOOK_CHECKS } from '../../src/reconciliation/index.js';
import { breachesOf } from '../reconciliation/whole-books.js';
import type { LiveWorld } from './live-world.js';

const NEEDS_REVIEW_AFTER_MS = 900_000;
/** Warnings are for people to settle: of an eSIM that the provider takes back by itself, as one does here. */
const ERROR_CHECKS = BOOK_CHECKS.filter(({ severity }) => severity === 'error');
const LINE_NUMBER = /-\d+$/;

/**
 * Whatever callbacks and polls did: each order and top-up was bought once provider and nothing beside them, and every
 * invariant of our own books holds (ledger sum 0, held = active holds, one charge and one event per end).
 */
export async function expectBooksInOrder(world: LiveWorld): Promise<void> {
  const { pool } = world.database;
  for (const check of ERROR_CHECKS)
    expect(await breachesOf(pool, check, NEEDS_REVIEW_AFTER_MS), check.check).toEqual([]);
  const { rows } = await pool.query<{ reference: string; bought: number }>(
    `SELECT provider_reference AS reference, quantity AS bought FROM orders WHERE mode = 'live'
     UNION ALL SELECT provider_reference, 1 FROM topups WHERE mode = 'live'`,
  );
  expect(rows.length, 'something was sold').toBeGreaterThan(0);
  expect(purchasesUpstream(world)).toEqual(
    Object.fromEntries(rows.map(({ reference, bought }) => [reference, bought])),
  );
  expect(world.esimAccess.state().repeated, 'orders sent to eSIM Access again').toEqual([]);
  expect(world.zendit.state().duplicatePosts, 'purchases sent to Zendit again').toBe(0);
}

/** What both providers sold under each reference of ours: eSIMs, or one top-up. */
function purchasesUpstream({ esimAccess, zendit }: LiveWorld): Record<string, number> {
  const { purchases, topups } = esimAccess.state();
  const sold: Record<string, number> = { ...purchases, ...topups };
  for (const id of Object.keys(zendit.state().purchases)) {
    const reference = id.replace(LINE_NUMBER, '');
    sold[reference] = (sold[reference] ?? 0) + 1;
  }
  return sold;
}
