import { Inject, Injectable } from '@nestjs/common';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { KeptReading, showReading, showReadings } from '../../infra/kept-reading.js';
import { LATENCY_SECONDS, METRICS } from '../../infra/metrics.js';
import type { FinishedAttempt } from './attempt-result.js';
import { BacklogRepository, type DeliveryCount, MAX_OPEN_COUNTED } from './backlog.repository.js';
import { EndedDeliveryCounts } from './ended-delivery-counts.js';

/**
 * Metrics for operators. `webhook_deliveries` are the counters of D33: for kind `event` its statuses add up to events x
 * endpoints. Gauges cover the whole database, so every worker shows the same; counters cover this process.
 */
@Injectable()
export class WebhookMetrics {
  private readonly attempts: Counter<'outcome' | 'error_class'>;
  private readonly latencies: Histogram<'outcome'>;
  private readonly blocks: Counter;
  private readonly disables: Counter;

  constructor(
    @Inject(METRICS) registry: Registry,
    private readonly backlog: BacklogRepository,
    private readonly endedCounts: EndedDeliveryCounts,
  ) {
    const registers = [registry];
    this.attempts = new Counter({
      name: 'webhook_attempts_total',
      help: 'Attempts recorded by this process, by outcome and error class.',
      labelNames: ['outcome', 'error_class'],
      registers,
    });
    this.latencies = new Histogram({
      name: 'webhook_attempt_duration_seconds',
      help: 'Duration of attempts until their outcome was known.',
      labelNames: ['outcome'],
      buckets: [...LATENCY_SECONDS, 60],
      registers,
    });
    this.blocks = new Counter({
      name: 'webhook_endpoint_blocks_total',
      help: 'Blocks of endpoints, including blocks that disabled the endpoint.',
      registers,
    });
    this.disables = new Counter({
      name: 'webhook_endpoint_disables_total',
      help: 'Endpoints disabled after too many consecutive blocks.',
      registers,
    });
    this.registerGauges(registry);
  }

  countAttempts(attempts: readonly FinishedAttempt[]): void {
    for (const { outcome, error, latencyMs } of attempts) {
      const error_class = error === null ? 'none' : error.split(':', 1)[0]!;
      this.attempts.inc({ outcome, error_class });
      this.latencies.observe({ outcome }, latencyMs / 1_000);
    }
  }

  countBlocks(blocked: readonly { readonly disabled: boolean }[]): void {
    this.blocks.inc(blocked.length);
    this.disables.inc(blocked.filter(({ disabled }) => disabled).length);
  }

  /** Each gauge has its own query: a slow or failing one leaves the others unchanged. */
  private registerGauges(registry: Registry): void {
    const registers = [registry];
    this.registerEndpointGauges(registry);
    const open = new KeptReading('webhook_deliveries', () => this.backlog.countOpen());
    const ended = new KeptReading('webhook_deliveries', () => this.endedCounts.read(), {
      shownWhileStale: true,
    });
    new Gauge({
      name: 'webhook_deliveries',
      help:
        'Deliveries by kind and status; the kind `event` adds up to events x endpoints (D33). Of those that have not ' +
        `ended ${MAX_OPEN_COUNTED} are counted; webhook_deliveries_counted_seconds says how old the others' count is.`,
      labelNames: ['kind', 'status'],
      registers,
      async collect() {
        this.reset();
        const counts = await Promise.all([open.current(), ended.current()]);
        for (const { kind, status, count } of counts.flatMap((each): readonly DeliveryCount[] => each ?? []))
          this.inc({ kind, status }, count);
      },
    });
    new Gauge({
      name: 'webhook_deliveries_counted_seconds',
      help: 'Age of the count of ended deliveries, in seconds; absent before the first count.',
      registers,
      collect() {
        const ageMs = ended.ageMs();
        if (ageMs === null) this.remove();
        else this.set(ageMs / 1_000);
      },
    });
  }

  private registerEndpointGauges(registry: Registry): void {
    showReadings(
      registry,
      { name: 'webhook_endpoints', help: 'Endpoints by status.', label: 'status' },
      async () => new Map((await this.backlog.countEndpoints()).map(({ status, count }) => [status, count])),
    );
    showReading(
      registry,
      {
        name: 'webhook_oldest_due_seconds',
        help: 'How long the oldest sendable delivery has been due; 0 if there is none.',
      },
      () => this.backlog.oldestDueSeconds(),
    );
  }
}
