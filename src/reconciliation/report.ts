import { Injectable } from '@nestjs/common';
import { databaseNow, Transactions } from '../infra/database/index.js';
import type { ProviderCost } from '../providers/index.js';
import { BOOK_CHECKS, MAX_PER_WALK } from './books/check-books.js';
import type { Difference } from './difference.js';
import { Reconcile } from './reconcile.js';
import { advance, AT_THE_BEGINNING, type Journal, type Part, type PartProgress, type Step } from './steps.js';

/** Number of checked rows by the subject's plural name. */
export type BookCounts = Readonly<Record<string, number>>;

/** Comparison with one provider. */
export interface ComparedProvider {
  readonly provider: string;
  readonly orders: number;
  readonly topups: number;
  /** Null when the provider did not report it. */
  readonly balance: ProviderCost | null;
  /** The first subjects that could not be compared, with the reasons. */
  readonly unanswered: readonly string[];
  readonly unansweredCount: number;
}

export interface ReconciliationReport {
  readonly startedAt: Date;
  readonly durationMs: number;
  /** Purchases changed at or after this time were compared with the providers; null: the providers were not queried. */
  readonly since: Date | null;
  readonly checks: number;
  readonly checked: BookCounts;
  readonly upstreams: readonly ComparedProvider[];
  readonly differences: readonly Difference[];
  /** Names of checks that stopped at `MAX_PER_WALK` differences; there may be more. */
  readonly cut: readonly string[];
}

export interface ReportCommand {
  /**
   * Purchases changed within this time before now are compared with the providers; null: the providers are not queried.
   */
  readonly providerWindowMs: number | null;
  readonly stopping: AbortSignal;
  /** Called after every step with the part and the number of rows or subjects read. */
  readonly onStep?: (part: string, rowsRead: number) => void;
}

/** One comparison for `npm run reconcile`: the result stays in memory, and nothing is written. */
@Injectable()
export class ReportBooks {
  constructor(
    private readonly transactions: Transactions,
    private readonly reconcile: Reconcile,
  ) {}

  /** @throws a database error; the abort reason of `stopping` */
  async report({ providerWindowMs, stopping, onStep }: ReportCommand): Promise<ReconciliationReport> {
    const startedMs = performance.now();
    const startedAt = await this.transactions.run(databaseNow);
    const since = providerWindowMs === null ? null : new Date(startedAt.getTime() - providerWindowMs);
    const journal = new ReportJournal(onStep);
    await this.reconcile.reconcile({ since, journal, stopping });
    const durationMs = Math.round(performance.now() - startedMs);
    return { startedAt, durationMs, since, checks: BOOK_CHECKS.length, ...journal.result() };
  }
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type CountedProvider = Mutable<ComparedProvider> & { readonly unanswered: string[] };

/** Keeps each check's first differences, and each provider's first unanswered queries. */
class ReportJournal implements Journal {
  private readonly progress = new Map<string, PartProgress>();
  private readonly checked: Record<string, number> = {};
  private readonly upstreams = new Map<string, CountedProvider>();
  private readonly differences: Difference[] = [];
  private readonly found = new Map<string, number>();

  constructor(private readonly onStep: ReportCommand['onStep']) {}

  progressOf({ name }: Part): PartProgress {
    return this.progress.get(name) ?? AT_THE_BEGINNING;
  }

  record(part: Part, step: Step): Promise<void> {
    const progress = advance(this.progressOf(part), step);
    this.progress.set(part.name, progress);
    if (part.counts) this.checked[part.counts] = progress.rowsRead;
    if (part.about) this.recordProvider(part.about, progress, step);
    for (const { provider, what } of step.unanswered) this.recordUnanswered(provider, what);
    for (const difference of step.differences) this.recordDifference(difference);
    this.onStep?.(part.name, progress.rowsRead);
    return Promise.resolve();
  }

  result(): Pick<ReconciliationReport, 'checked' | 'upstreams' | 'differences' | 'cut'> {
    const cut = [...this.found].filter(([, count]) => count >= MAX_PER_WALK).map(([check]) => check);
    const upstreams = [...this.upstreams.values()].sort((a, b) => (a.provider < b.provider ? -1 : 1));
    return { checked: this.checked, upstreams, differences: this.differences, cut };
  }

  private recordProvider(
    { provider, of }: NonNullable<Part['about']>,
    { rowsRead }: PartProgress,
    { balance = null }: Step,
  ): void {
    const upstream = this.upstream(provider);
    if (of === 'balance') upstream.balance = balance;
    else upstream[`${of}s`] = rowsRead;
  }

  private recordUnanswered(provider: string, what: string): void {
    const upstream = this.upstream(provider);
    upstream.unansweredCount += 1;
    if (upstream.unanswered.length < MAX_PER_WALK) upstream.unanswered.push(what);
  }

  private recordDifference(difference: Difference): void {
    const count = (this.found.get(difference.check) ?? 0) + 1;
    this.found.set(difference.check, count);
    if (count <= MAX_PER_WALK) this.differences.push(difference);
  }

  private upstream(provider: string): CountedProvider {
    const known = this.upstreams.get(provider);
    if (known) return known;
    const made = { provider, orders: 0, topups: 0, balance: null, unanswered: [], unansweredCount: 0 };
    this.upstreams.set(provider, made);
    return made;
  }
}
