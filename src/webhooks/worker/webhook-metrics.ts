import { Inject, Injectable } from '@nestjs/common';
import { Counter, Gauge, Registry } from 'prom-client';
import { METRICS } from '../../infra/metrics.js';
import type { FinishedAttempt } from './attempt-result.js';
import { type DeliveryCounts, BacklogRepository } from './backlog.repository.js';
import type { BlockedEndpoint } from './endpoint-transitions.repository.js';

/** Counting reads every delivery: a scraper that asks more often gets the last answer. */
const COUNTS_KEPT_MS = 10_000;

/**
 * What operators watch. `webhook_deliveries` are the counters of D33: for the kind `event`, its statuses add up to events x endpoints.
 * The gauges are of the whole database, so every worker shows the same; the counters are of this process.
 */
@Injectable()
export class WebhookMetrics {
  private readonly attempts: Counter<'outcome' | 'error_class'>;
  private readonly blocks: Counter;
  private readonly disables: Counter;
  private counts: DeliveryCounts | null = null;
  private counting: Promise<DeliveryCounts | null> | null = null;
  private countedAt = 0;

  constructor(
    @Inject(METRICS) registry: Registry,
    private readonly repository: BacklogRepository,
  ) {
    const registers = [registry];
    this.attempts = new Counter({
      name: 'webhook_attempts_total',
      help: 'Attempts recorded by this process, by outcome and class of error.',
      labelNames: ['outcome', 'error_class'],
      registers,
    });
    this.blocks = new Counter({
      name: 'webhook_endpoint_blocks_total',
      help: 'Blocks of endpoints, those that disabled it included.',
      registers,
    });
    this.disables = new Counter({
      name: 'webhook_endpoint_disables_total',
      help: 'Endpoints disabled after too many consecutive blocks.',
      registers,
    });
    this.registerGauges(registers);
  }

  countAttempts(attempts: readonly FinishedAttempt[]): void {
    for (const { outcome, error } of attempts) {
      const error_class = error === null ? 'none' : error.split(':', 1)[0]!;
      this.attempts.inc({ outcome, error_class });
    }
  }

  countBlocks(blocked: readonly BlockedEndpoint[]): void {
    this.blocks.inc(blocked.length);
    this.disables.inc(blocked.filter(({ disabled }) => disabled).length);
  }

  private registerGauges(registers: Registry[]): void {
    const current = (): Promise<DeliveryCounts | null> => this.currentCounts();
    new Gauge({
      name: 'webhook_deliveries',
      help: 'Deliveries by kind and status; the kind `event` adds up to events x endpoints (D33).',
      labelNames: ['kind', 'status'],
      registers,
      async collect() {
        this.reset();
        for (const { kind, status, count } of (await current())?.deliveries ?? [])
          this.set({ kind, status }, count);
      },
    });
    new Gauge({
      name: 'webhook_endpoints',
      help: 'Endpoints by status.',
      labelNames: ['status'],
      registers,
      async collect() {
        this.reset();
        for (const { status, count } of (await current())?.endpoints ?? []) this.set({ status }, count);
      },
    });
    new Gauge({
      name: 'webhook_oldest_due_seconds',
      help: 'Age of the oldest delivery that is due and could be sent; 0 when there is none.',
      registers,
      async collect() {
        const counts = await current();
        // `reset` would leave a zero: this gauge has no labels.
        if (counts) this.set(counts.oldestDueSeconds);
        else this.remove();
      },
    });
  }

  /** Null when PostgreSQL does not answer in time: these gauges are missing then, and no other. */
  private currentCounts(): Promise<DeliveryCounts | null> {
    const isFresh = Date.now() - this.countedAt < COUNTS_KEPT_MS;
    if (this.counting === null && !isFresh) {
      this.counting = this.repository
        .count()
        .catch(() => null)
        .then((counts) => {
          this.counts = counts;
          this.countedAt = Date.now();
          this.counting = null;
          return counts;
        });
    }
    return this.counting ?? Promise.resolve(this.counts);
  }
}
