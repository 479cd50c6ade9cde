import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DataSource, Logger } from 'typeorm';
import { loadConfig } from '../../src/config/index.js';
import { createDataSource } from '../../src/infra/database/index.js';
import {
  EsimPurchasesRepository,
  type LiveProvider,
  type ProviderRegistry,
  ProviderOutcomeUnknown,
} from '../../src/providers/index.js';
import { BooksRepository } from '../../src/reconciliation/books/books.repository.js';
import { CheckBooks } from '../../src/reconciliation/books/check-books.js';
import { CompareProviders } from '../../src/reconciliation/providers/compare-providers.js';
import { ProviderSubjectsRepository } from '../../src/reconciliation/providers/provider-subjects.repository.js';
import {
  advance,
  AT_THE_BEGINNING,
  type Journal,
  type Part,
  type PartProgress,
  type Step,
  walk,
  walkAtOnce,
} from '../../src/reconciliation/steps.js';
import { createTestDatabase, type TestDatabase, testEnvironment } from '../harness/index.js';
import { insertOrders, ONE_WRONG_OF } from './many-orders.js';

const ORDERS = 3_000;
const PAGE_SIZE = 25;
/** BEGIN, the timeout, the read and COMMIT, once for the range and once for the rule. */
const STATEMENTS_OF_A_BOOK_STEP = 8;

/** Records the size of each step, but not its findings. */
class StepSizes implements Journal {
  readonly steps: { readonly part: string; readonly rowsRead: number; readonly statements: number }[] = [];
  differences = 0;
  unanswered = 0;
  private readonly progress = new Map<string, PartProgress>();
  private counted = 0;

  constructor(private readonly statements: () => number) {}

  progressOf({ name }: Part): PartProgress {
    return this.progress.get(name) ?? AT_THE_BEGINNING;
  }

  record(part: Part, step: Step): Promise<void> {
    this.progress.set(part.name, advance(this.progressOf(part), step));
    this.differences += step.differences.length;
    this.unanswered += step.unanswered.length;
    const statements = this.statements() - this.counted;
    this.counted += statements;
    this.steps.push({ part: part.name, rowsRead: step.rowsRead, statements });
    return Promise.resolve();
  }
}

/** A provider that knows nothing, throws for one order, and counts concurrent calls. */
class IgnorantProvider {
  readonly name = 'zendit';
  readonly timeoutMs = 5_000;
  readonly readLagMs = 0;
  mostAtOnce = 0;
  silentAbout = '';
  private atOnce = 0;

  getBalance(): Promise<null> {
    return Promise.resolve(null);
  }

  async listPurchases({ reference }: { readonly reference: string }): Promise<readonly never[]> {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.atOnce);
    await new Promise((resolve) => setImmediate(resolve));
    this.atOnce--;
    if (reference === this.silentAbout) throw new ProviderOutcomeUnknown();
    return [];
  }
}

let database: TestDatabase;
let source: DataSource;
let statements = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  await insertOrders(database, ORDERS);
  await database.pool.query('ANALYZE');
  const settings = {
    url: database.url,
    poolMax: 5,
    poolWaitMs: 20_000,
    applicationName: 'test',
    entities: [],
  };
  source = createDataSource(settings);
  const nothing = (): void => undefined;
  const logger = {
    logQuery: () => void statements++,
    log: nothing,
    logMigration: nothing,
  } as Partial<Logger>;
  const rest = { logQueryError: nothing, logQuerySlow: nothing, logSchemaBuild: nothing };
  source.setOptions({ logging: ['query'], logger: { ...logger, ...rest } as Logger });
  await source.initialize();
});

afterAll(async () => {
  await source.destroy();
  await database.drop();
});

const config = () => ({ ...loadConfig(testEnvironment(database.url)), reconcilePageSize: PAGE_SIZE });

describe('a reconciliation of thousands of orders', () => {
  it('queries a provider page by page, few pages at once, and counts lookups without a result', async () => {
    const provider = new IgnorantProvider();
    provider.silentAbout = 'many-1001';
    const registry = { liveProviders: [provider as unknown as LiveProvider] } as unknown as ProviderRegistry;
    const subjects = new ProviderSubjectsRepository(
      source.manager,
      new EsimPurchasesRepository(source.manager),
    );
    const providers = new CompareProviders(registry, subjects, config());
    const [ofProvider] = providers.partsByProvider(new Date(Date.now() - 3_600_000));
    statements = 0;
    const sizes = new StepSizes(() => statements);
    await walkAtOnce([ofProvider!], sizes, new AbortController().signal);
    const pages = sizes.steps.filter(({ part }) => part === 'provider:zendit:order');
    expect(pages.reduce((sum, { rowsRead }) => sum + rowsRead, 0)).toBe(ORDERS);
    expect(Math.max(...pages.map(({ rowsRead }) => rowsRead))).toBe(PAGE_SIZE);
    // A page costs two statements per order, one before and one after its provider query, plus those that read the
    // page.
    expect(Math.max(...pages.map((page) => page.statements))).toBeLessThanOrEqual(2 * PAGE_SIZE + 2);
    expect(provider.mostAtOnce).toBe(3);
    expect([sizes.differences, sizes.unanswered]).toEqual([ORDERS / ONE_WRONG_OF, 1]);
  });

  it('reads a bounded part of the books with each statement', async () => {
    const books = new BooksRepository(source.manager, config());
    statements = 0;
    const sizes = new StepSizes(() => statements);
    const parts = new CheckBooks(books, config()).parts();
    await walk(parts, sizes, new AbortController().signal);
    const rowsPerStep = 10 * PAGE_SIZE;
    expect(Math.max(...sizes.steps.map(({ rowsRead }) => rowsRead))).toBe(rowsPerStep);
    expect(Math.max(...sizes.steps.map((step) => step.statements))).toBe(STATEMENTS_OF_A_BOOK_STEP);
    const ofOrders = sizes.steps.filter(({ part }) => part === 'issued_order_is_charged_once:orders');
    expect(ofOrders.filter(({ rowsRead }) => rowsRead > 0)).toHaveLength(ORDERS / rowsPerStep);
    expect(sizes.differences).toBe(0);
  });
});
