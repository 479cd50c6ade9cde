import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BOOK_CHECKS } from '../../src/reconciliation/index.js';
import { cloneDatabase, dropDatabase, onDatabase } from '../harness/database.js';
import { BOOK_BREACHES, corrupt } from './book-breaches.js';
import { differencesOf, reconcileCommand, reconcileHere } from './reconcile-command.js';
import { type Sold, SoldWorld } from './sold-world.js';

/** As an operator pastes it; the wallet is the first of its database here, too. */
const RUNBOOK_SQL = /### ReconciliationDifferences\n.*?```sql\n(.*?)```/s.exec(
  readFileSync('docs/operations.md', 'utf8'),
)![1]!;
const NO_PROVIDER = { args: ['--no-upstream'] };

let world: SoldWorld;
let sold: Sold;

beforeAll(async () => {
  world = await SoldWorld.open();
  sold = await world.sell();
  await world.stopService();
});

afterAll(async () => {
  await world.close();
  await dropDatabase(world.database.url);
});

describe('npm run reconcile -- --no-upstream', () => {
  it('exits with 0 and counts what it checked when the books agree', async () => {
    const result = await reconcileCommand(world.database.url, NO_PROVIDER);
    expect([result.code, result.stderr]).toEqual([0, '']);
    expect(differencesOf(result)).toEqual([]);
    expect(result.stdout).toContain('1 wallets, 8 holds, 9 transactions, 18 entries, 7 orders, 2 topups');
    expect(result.stdout).toMatch(
      /^22 checks, 0 differences \(0 errors, 0 warnings\), 0 questions unanswered/m,
    );
  });

  it('is tested with a breach of every invariant', () => {
    expect(BOOK_BREACHES.map(({ check }) => check)).toEqual(BOOK_CHECKS.map(({ check }) => check));
  });

  it.each(BOOK_BREACHES)(
    'exits with 1 and names what is wrong: $check',
    async ({ check, statements, names }) => {
      const url = await cloneDatabase(world.database.url);
      try {
        await corrupt(url, statements(sold));
        const result = await reconcileHere(url, NO_PROVIDER);
        expect([result.code, result.stderr]).toEqual([1, '']);
        const lines = differencesOf(result).flatMap(([name, line]) => (name === check ? [line] : []));
        expect(lines.join('\n')).toContain(names(sold));
        expect(lines[0]).toMatch(/: expected .+; found .+ To do: .+/);
      } finally {
        await dropDatabase(url);
      }
    },
  );

  it.each(['wallet_posted_is_its_entries', 'wallet_held_is_its_holds'])(
    'finds nothing any more after what the runbook says: %s',
    async (check) => {
      const url = await cloneDatabase(world.database.url);
      try {
        await corrupt(url, BOOK_BREACHES.find((breach) => breach.check === check)!.statements(sold));
        expect((await reconcileHere(url, NO_PROVIDER)).code).toBe(1);
        await onDatabase(url, RUNBOOK_SQL);
        const result = await reconcileHere(url, NO_PROVIDER);
        expect([differencesOf(result), result.code]).toEqual([[], 0]);
      } finally {
        await dropDatabase(url);
      }
    },
  );
});
