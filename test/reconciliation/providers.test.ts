import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cloneDatabase, dropDatabase } from '../harness/database.js';
import { corrupt } from './book-breaches.js';
import { type CommandResult, differencesOf, reconcileHere } from './reconcile-command.js';
import { type Sold, SoldWorld } from './sold-world.js';

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

/** The command on a copy of the database that `statements` have changed. */
async function reconcile(statements: string, ...args: string[]): Promise<CommandResult> {
  const url = await cloneDatabase(world.database.url);
  try {
    await corrupt(url, statements);
    return await reconcileHere(url, { args, env: world.env });
  } finally {
    await dropDatabase(url);
  }
}

/** The line of one check; fails when there is none. */
function lineOf(result: CommandResult, check: string): string {
  const found = differencesOf(result).find(([name]) => name === check);
  expect(found, result.stdout + result.stderr).toBeDefined();
  return found![1];
}

describe('npm run reconcile with the providers', () => {
  it('agrees with both when nothing is wrong, and names their balances', async () => {
    const result = await reconcileHere(world.database.url, { env: world.env });
    expect([result.code, result.stderr]).toEqual([0, '']);
    expect(result.stdout).toMatch(
      /^upstream esim_access: 3 orders and 1 topups since .+, balance \d+\.\d\d USD$/m,
    );
    expect(result.stdout).toMatch(
      /^upstream zendit: 3 orders and 1 topups since .+, balance \d+\.\d\d USD$/m,
    );
  });

  it('finds what was bought there and failed here', async () => {
    const result = await reconcile(`UPDATE orders SET status = 'failed' WHERE id = '${sold.zendit}'`);
    expect(result.code).toBe(1);
    expect(lineOf(result, 'upstream_has_no_more')).toContain(sold.zendit);
  });

  it('finds what is canceled here and not there', async () => {
    const result = await reconcile(`UPDATE esims SET status = 'canceled' WHERE order_id = '${sold.issued}'`);
    expect(result.code).toBe(1);
    expect(lineOf(result, 'upstream_has_no_more')).toContain(sold.issued);
  });

  it('finds what is issued here and canceled there, at either provider', async () => {
    const ids = [sold.canceled, sold.zenditCanceled];
    const result = await reconcile(`
      UPDATE orders SET status = 'issued' WHERE id IN ('${ids.join("', '")}');
      UPDATE esims SET status = 'issued' WHERE order_id IN ('${ids.join("', '")}')`);
    const lines = differencesOf(result).filter(([name]) => name === 'upstream_took_nothing_back');
    expect(lines).toHaveLength(2);
    for (const id of ids) expect(lines.join('\n')).toContain(id);
  });

  it('finds what is issued here and not known there', async () => {
    const result = await reconcile(
      `UPDATE orders SET provider_reference = 'po_nobody_knows' WHERE id = '${sold.issued}'`,
    );
    expect(result.code).toBe(1);
    expect(lineOf(result, 'upstream_knows_what_was_issued')).toContain(sold.issued);
  });

  it('finds more eSIMs there than were issued here', async () => {
    const result = await reconcile(`
      DELETE FROM esims WHERE id = (SELECT min(id) FROM esims WHERE order_id = '${sold.issued}');
      UPDATE orders SET quantity_issued = 1 WHERE id = '${sold.issued}'`);
    expect(lineOf(result, 'upstream_quantity_agrees')).toMatch(/expected 1 sold; found 1 besides/);
  });

  it('finds a top-up that was applied and failed here, and one that was completed here alone', async () => {
    const result = await reconcile(`
      UPDATE topups SET status = 'failed', completed_at = NULL, failed_at = now(), failure_code = 'provider_rejected'
      WHERE id = '${sold.topup}';
      UPDATE topups SET status = 'completed', completed_at = now(), failed_at = NULL WHERE id = '${sold.failedTopup}'`);
    const lines = differencesOf(result).filter(([name]) => name === 'upstream_topup_agrees');
    expect(lines).toHaveLength(2);
    for (const id of [sold.topup, sold.failedTopup]) expect(lines.join('\n')).toContain(id);
  });

  it('asks only about what changed since the given time', async () => {
    const old = `UPDATE orders SET status = 'failed', updated_at = now() - interval '3 hours' WHERE id = '${sold.zendit}'`;
    const narrow = await reconcile(old, '--since', '2h');
    expect(differencesOf(narrow).map(([name]) => name)).not.toContain('upstream_has_no_more');
    expect(lineOf(await reconcile(old, '--since', '4h'), 'upstream_has_no_more')).toContain(sold.zendit);
  });

  it('exits with 2 when a provider does not answer, and says what was not compared', async () => {
    const result = await reconcileHere(world.database.url, {
      env: { ...world.env, ZENDIT_BASE_URL: 'http://127.0.0.1:9/v1' },
    });
    expect(result.code).toBe(2);
    expect(result.stdout).toMatch(/^UNANSWERED zendit balance: /m);
    expect(result.stdout).toContain(`UNANSWERED zendit ${sold.zendit}: `);
    expect(result.stdout).toMatch(/0 differences .*, 5 questions unanswered/);
  });

  it('exits with 2 when a provider that has sold something is not connected', async () => {
    const { ZENDIT_BASE_URL: _url, ZENDIT_API_KEY: _key, ...env } = world.env;
    const result = await reconcileHere(world.database.url, { env });
    expect(result.code).toBe(2);
    expect(result.stdout).toContain('UNANSWERED zendit not connected');
  });
});
