import { readFileSync } from 'node:fs';
import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BOOK_CHECKS } from '../../src/reconciliation/index.js';
import { cloneDatabase, dropDatabase, onDatabase } from '../harness/database.js';
import { eventually, openPool, startTestService, type TestService } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { BOOK_BREACHES, corrupt } from './book-breaches.js';
import { type CommandResult, differencesOf, reconcileCommand, reconcileHere } from './reconcile-command.js';
import { type Sold, SoldWorld } from './sold-world.js';

/** The SQL that an operator pastes. It uses the first wallet of the database, which also works here. */
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

/** Runs `work` on a copy of the database that `statements` have changed. */
async function onCopy<T>(statements: string, work: (url: string) => Promise<T>): Promise<T> {
  const url = await cloneDatabase(world.database.url);
  try {
    await corrupt(url, statements);
    return await work(url);
  } finally {
    await dropDatabase(url);
  }
}

describe('npm run reconcile', () => {
  it('exits with 0 and counts its checks when the books agree', async () => {
    const result = await reconcileCommand(world.database.url, NO_PROVIDER);
    expect([result.code, result.stderr]).toEqual([0, '']);
    expect(differencesOf(result)).toEqual([]);
    expect(result.stdout).toContain('1 wallets, 8 holds, 9 transactions, 18 entries, 7 orders, 2 topups');
    expect(result.stdout).toMatch(
      /^23 checks, 0 differences \(0 errors, 0 warnings\), 0 queries unanswered/m,
    );
  });

  it('finds a breach of every invariant', () => {
    expect(BOOK_BREACHES.map(({ check }) => check)).toEqual(BOOK_CHECKS.map(({ check }) => check));
  });

  it.each(BOOK_BREACHES)('exits with 1 and names the breach of $check', ({ check, statements, names }) =>
    onCopy(statements(sold), async (url) => {
      const result = await reconcileHere(url, NO_PROVIDER);
      expect([result.code, result.stderr]).toEqual([1, '']);
      const lines = differencesOf(result).flatMap(([name, line]) => (name === check ? [line] : []));
      expect(lines.join('\n')).toContain(names(sold));
      expect(lines[0]).toMatch(/: expected .+; found .+ To do: .+/);
    }),
  );

  it.each(['wallet_posted_is_its_entries', 'wallet_held_is_its_holds'])(
    'finds no breach of %s after the steps in the runbook',
    (check) =>
      onCopy(BOOK_BREACHES.find((breach) => breach.check === check)!.statements(sold), async (url) => {
        expect((await reconcileHere(url, NO_PROVIDER)).code).toBe(1);
        await onDatabase(url, RUNBOOK_SQL);
        const result = await reconcileHere(url, NO_PROVIDER);
        expect([differencesOf(result), result.code]).toEqual([[], 0]);
      }),
  );

  it('prints one JSON object with --json', async () => {
    const { code, stdout } = await reconcileHere(world.database.url, { args: ['--json', '--no-upstream'] });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ checked: { wallets: 1, orders: 7 }, differences: [] });
  });

  it('prints its usage with --help, without settings', async () => {
    const { code, stdout } = await reconcileHere('', { args: ['--help'], env: { ADMIN_TOKENS: '' } });
    expect(code).toBe(0);
    for (const word of ['--since', '--no-upstream', '--json', 'Exit code']) expect(stdout).toContain(word);
  });

  it.each<[string, string, string[], Record<string, string>, RegExp]>([
    ['an unknown option', 'postgres://x@127.0.0.1:9/x', ['--fix'], {}, /npm run reconcile/],
    ['a malformed time', 'postgres://x@127.0.0.1:9/x', ['--since', 'yesterday'], {}, /npm run reconcile/],
    ['a future time', 'postgres://x@127.0.0.1:9/x', ['--since', '2999-01-01T00:00:00Z'], {}, /npm run/],
    ['an unreachable database', 'postgres://x@127.0.0.1:9/x', [], {}, /^could not run: .+$/],
    ['missing settings, and lists them', '', [], { SECRETS_KEYS: '' }, /DATABASE_URL[^]*SECRETS_KEYS/],
  ])('exits with 2 for %s', async (_what, url, args, env, message) => {
    const { code, stdout, stderr } = await reconcileHere(url, { args, env });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
  });
});

describe('npm run reconcile with the providers', () => {
  const reconcile = (statements: string, ...args: string[]): Promise<CommandResult> =>
    onCopy(statements, (url) => reconcileHere(url, { args, env: world.env }));

  /** The lines of one check. */
  const linesOf = (result: CommandResult, check: string): string[] =>
    differencesOf(result).flatMap(([name, line]) => (name === check ? [line] : []));

  it('agrees with both when nothing is wrong, and prints their balances', async () => {
    const result = await reconcileHere(world.database.url, { env: world.env });
    expect([result.code, result.stderr]).toEqual([0, '']);
    for (const name of ['esim_access', 'zendit'])
      expect(result.stdout).toMatch(
        new RegExp(`^upstream ${name}: 3 orders and 1 topups since .+, balance \\d+\\.\\d\\d USD$`, 'm'),
      );
  });

  it.each<[string, string, (keyof Sold)[], (of: Sold) => string]>([
    [
      'bought at the provider but failed here',
      'upstream_has_no_more',
      ['zendit'],
      ({ zendit }) => `UPDATE orders SET status = 'failed' WHERE id = '${zendit}'`,
    ],
    [
      'canceled here but not at the provider',
      'upstream_has_no_more',
      ['issued'],
      ({ issued }) => `UPDATE esims SET status = 'canceled' WHERE order_id = '${issued}'`,
    ],
    [
      'issued here but canceled at the provider, for both providers',
      'upstream_took_nothing_back',
      ['canceled', 'zenditCanceled'],
      ({ canceled, zenditCanceled }) => `
        UPDATE orders SET status = 'issued' WHERE id IN ('${canceled}', '${zenditCanceled}');
        UPDATE esims SET status = 'issued' WHERE order_id IN ('${canceled}', '${zenditCanceled}')`,
    ],
    [
      'issued here but unknown at the provider',
      'upstream_knows_what_was_issued',
      ['issued'],
      ({ issued }) => `UPDATE orders SET provider_reference = 'po_nobody_knows' WHERE id = '${issued}'`,
    ],
    [
      'issued here with fewer eSIMs than the provider sold',
      'upstream_quantity_agrees',
      ['issued'],
      ({ issued }) => `
        DELETE FROM esims WHERE id = (SELECT min(id) FROM esims WHERE order_id = '${issued}');
        UPDATE orders SET quantity_issued = 1 WHERE id = '${issued}'`,
    ],
    [
      'topped up on only one side',
      'upstream_topup_agrees',
      ['topup', 'failedTopup'],
      ({ topup, failedTopup }) => `
        UPDATE topups SET status = 'failed', completed_at = NULL, failed_at = now(), failure_code = 'provider_rejected'
        WHERE id = '${topup}';
        UPDATE topups SET status = 'completed', completed_at = now(), failed_at = NULL WHERE id = '${failedTopup}'`,
    ],
  ])('finds a purchase that was %s', async (_what, check, ids, statements) => {
    const result = await reconcile(statements(sold));
    expect(result.code).toBe(1);
    const lines = linesOf(result, check);
    expect(lines, result.stdout + result.stderr).toHaveLength(ids.length);
    for (const id of ids) expect(lines.join('\n')).toContain(sold[id]);
  });

  it('queries only changes since the given time', async () => {
    const old = `UPDATE orders SET status = 'failed', updated_at = now() - interval '3 hours' WHERE id = '${sold.zendit}'`;
    expect(linesOf(await reconcile(old, '--since', '2h'), 'upstream_has_no_more')).toEqual([]);
    expect(linesOf(await reconcile(old, '--since', '4h'), 'upstream_has_no_more')[0]).toContain(sold.zendit);
  });

  it('exits with 2 when a provider does not respond, and names what was not compared', async () => {
    const env = { ...world.env, ZENDIT_BASE_URL: 'http://127.0.0.1:9/v1' };
    const result = await reconcileHere(world.database.url, { env });
    expect(result.code).toBe(2);
    expect(result.stdout).toMatch(/^UNANSWERED zendit balance: /m);
    expect(result.stdout).toContain(`UNANSWERED zendit ${sold.zendit}: `);
    expect(result.stdout).toMatch(/0 differences .*, 5 queries unanswered/);
  });

  it('exits with 2 when a provider with sold eSIMs is not connected', async () => {
    const { ZENDIT_BASE_URL: _url, ZENDIT_API_KEY: _key, ...env } = world.env;
    const result = await reconcileHere(world.database.url, { env });
    expect(result.code).toBe(2);
    expect(result.stdout).toContain('UNANSWERED zendit not connected');
  });
});

describe('the scheduled reconciliation of two workers', () => {
  const EVERY_MS = 500;
  let url: string;
  let pool: Pool;
  let service: TestService;
  let second: TestService;

  beforeAll(async () => {
    url = await cloneDatabase(world.database.url);
    await corrupt(
      url,
      `UPDATE orders SET refunded_amount = 1 WHERE id = '${sold.issued}';
       UPDATE topups SET price_amount = price_amount + 1 WHERE id = '${sold.failedTopup}';
       UPDATE wallets SET held = held + 1`,
    );
    pool = openPool(url, 2);
    const database = { url, pool, drop: () => Promise.resolve() };
    const env = { ...world.env, RECONCILE_INTERVAL_MS: String(EVERY_MS) };
    service = await startTestService({ database, env });
    second = await startTestService({ role: 'worker', database, env });
  });
  afterAll(async () => {
    await second.stop();
    await service.stop();
    await pool.end();
    await dropDatabase(url);
  });

  const completedRuns = (count: number): Promise<Json[]> =>
    eventually(`${count} runs`, async () => {
      const { rows } = await pool.query<Json>(
        `SELECT * FROM reconciliation_runs WHERE status = 'completed' ORDER BY id`,
      );
      return rows.length >= count ? rows : null;
    });

  it('stores each run with its checks and findings, including the providers', async () => {
    const [run] = await completedRuns(1);
    expect(run).toMatchObject({ differences: 3, unanswered: 0, lease_until: null });
    expect(run!['checked']).toMatchObject({ orders: 7, topups: 2, wallets: 1 });
    const { rows } = await pool.query<Json>(
      'SELECT check_name, severity, subject FROM reconciliation_differences WHERE run_id = $1 ORDER BY seq',
      [run!['id']],
    );
    expect(rows.map((row) => row['check_name'])).toEqual([
      'wallet_held_is_its_holds',
      'order_refunds_agree',
      'failed_topup_costs_nothing',
    ]);
    expect(rows[1]!['subject'].order).toBe(sold.issued);
    expect((await service.admin.get('/metrics')).text).toMatch(/^reconciliation_differences\{.*\} 3$/m);
  });

  it('runs once per interval, and alerts support once about an order or a top-up with a difference', async () => {
    const starts = (await completedRuns(3)).map((run) => (run['started_at'] as Date).getTime());
    for (let i = 1; i < starts.length; i++)
      expect(starts[i]! - starts[i - 1]!).toBeGreaterThanOrEqual(EVERY_MS);
    const alerts = async (type: string) =>
      (await service.admin.get(`/internal/v1/alerts?type=${type}`)).body.data as Json[];
    expect(await alerts('order.needs_review')).toMatchObject([
      { subject_id: sold.issued, details: { reconciliation: 'order_refunds_agree' } },
    ]);
    expect(await alerts('topup.needs_review')).toMatchObject([
      { subject_id: sold.failedTopup, details: { reconciliation: 'failed_topup_costs_nothing' } },
    ]);
  });

  it('takes over from a worker that died in its run, and deletes the oldest runs', async () => {
    await pool.query(`
      INSERT INTO reconciliation_runs (status, started_at, lease_until)
      VALUES ('running', now() - interval '7 hours', now() - interval '1 hour');
      INSERT INTO reconciliation_runs (status, started_at, ended_at)
      SELECT 'completed', now() - interval '9 days', now() - interval '9 days' FROM generate_series(1, 40)`);
    await eventually('only thirty are kept', async () => {
      const { rows } = await pool.query<{ runs: number; running: number }>(
        `SELECT count(*)::int AS runs, count(*) FILTER (WHERE lease_until <= now())::int AS running
         FROM reconciliation_runs`,
      );
      return rows[0]!.runs <= 31 && rows[0]!.running === 0;
    });
  });
});
