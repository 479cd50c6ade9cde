import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pino } from 'pino';
import type { DataSource } from 'typeorm';
import type { Alerts } from '../../src/alerts/index.js';
import { createDataSource, Transactions } from '../../src/infra/database/index.js';
import type { Part, Step } from '../../src/reconciliation/steps.js';
import {
  type HeldRun,
  ReconciliationRunsRepository,
} from '../../src/reconciliation/worker/reconciliation-runs.repository.js';
import { RunJournal, RunTakenOver } from '../../src/reconciliation/worker/run-journal.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';

const INTERVAL_MS = 86_400_000;
const LEASE_MS = 60_000;

const part: Part = { name: 'a part', step: () => Promise.reject(new Error('not walked here')) };

function stepTo(cursor: string): Step {
  const kind = { check: 'a_check', severity: 'error', what: 'A rule.', advice: 'Look.' } as const;
  const difference = { ...kind, subject: { wallet: cursor }, expected: '1', found: '2' };
  return { cursor, rowsRead: 1, differences: [difference], unanswered: [] };
}

let database: TestDatabase;
let source: DataSource;
let transactions: Transactions;
let runs: ReconciliationRunsRepository;

beforeAll(async () => {
  database = await createTestDatabase();
  const settings = {
    url: database.url,
    poolMax: 2,
    poolWaitMs: 20_000,
    applicationName: 'test',
    entities: [],
  };
  source = await createDataSource(settings).initialize();
  transactions = new Transactions(source);
  runs = new ReconciliationRunsRepository(source.manager);
});

afterAll(async () => {
  await source.destroy();
  await database.drop();
});

const claim = (): Promise<HeldRun | null> => transactions.run((tx) => runs.claim(tx, INTERVAL_MS, LEASE_MS));

async function journalOf(run: HeldRun): Promise<RunJournal> {
  // This check raises no alert.
  const alerts = {} as Alerts;
  const logger = pino({ level: 'silent' });
  return new RunJournal(run, await runs.listProgress(run.id), { runs, alerts, transactions, logger });
}

async function kept(): Promise<unknown> {
  const { rows } = await database.pool.query(
    `SELECT r.status, r.fence, r.differences, c.cursor, c.rows_read,
            ARRAY(SELECT subject ->> 'wallet' FROM reconciliation_differences d WHERE d.run_id = r.id ORDER BY seq) AS found
     FROM reconciliation_runs r LEFT JOIN reconciliation_cursors c ON c.run_id = r.id`,
  );
  return rows;
}

describe('a run whose lease expired', () => {
  it('is continued at its cursor, and its former worker can no longer write, renew or end it', async () => {
    const first = (await claim())!;
    const former = await journalOf(first);
    await former.record(part, stepTo('1'));
    expect(await claim(), 'nobody else has it before').toBeNull();
    await database.pool.query('UPDATE reconciliation_runs SET lease_until = now()');
    const second = (await claim())!;
    expect([second.id, second.fence]).toEqual([first.id, '2']);

    const before = await kept();
    await expect(former.record(part, stepTo('2'))).rejects.toThrow(RunTakenOver);
    await expect(former.complete()).rejects.toThrow(RunTakenOver);
    expect(await runs.renew(first, LEASE_MS)).toBe(false);
    await runs.release(first);
    expect(await claim(), 'the second still has it').toBeNull();
    expect(await kept()).toEqual(before);

    const journal = await journalOf(second);
    expect(journal.progressOf(part)).toEqual({ cursor: '1', rowsRead: 1, differences: 1 });
    await journal.record(part, { ...stepTo('2'), cursor: null });
    await journal.complete();
    expect(await kept()).toEqual([
      { status: 'completed', fence: '2', differences: 2, cursor: null, rows_read: '2', found: ['1', '2'] },
    ]);
  });

  it('is abandoned when five workers made no progress', async () => {
    await database.pool.query('DELETE FROM reconciliation_runs');
    const { id } = (await claim())!;
    for (let nth = 2; nth <= 5; nth++) {
      await database.pool.query('UPDATE reconciliation_runs SET lease_until = now()');
      expect(await claim()).toMatchObject({ id, fence: String(nth) });
    }
    await database.pool.query('UPDATE reconciliation_runs SET lease_until = now()');
    const next = (await claim())!;
    expect(next.fence).toBe('1');
    expect(next.id).not.toBe(id);
  });
});
