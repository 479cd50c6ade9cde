import { Inject, Injectable } from '@nestjs/common';
import { Counter, Gauge, Registry } from 'prom-client';
import { METRICS } from '../../infra/metrics.js';
import type { FinishedAttempt } from './attempt-result.js';
import { BacklogRepository, type DeliveryCount, MOST_OPEN_COUNTED } from './backlog.repository.js';
import type { BlockedEndpoint } from './endpoint-transitions.repository.js';
import { KeptReading } from './kept-reading.js';

/**
 * What operators watch. `webhook_deliveries` are the counters of D33: for the kind `event`, its statuses add up to events x endpoints.
 * The gauges are of the whole database, so every worker shows the same; the counters are of this process.
 */
@Injectable()
export class WebhookMetrics {
  private readonly attempts: Counter<'outcome' | 'error_class'>;
  private readonly blocks: Counter;
  private readonly disables: Counter;

  constructor(
    @Inject(METRICS) registry: Registry,
    private readonly backlog: BacklogRepository,
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

  /** Each of its own reading: what takes long or fails leaves the others as they are. */
  private registerGauges(registers: Registry[]): void {
    this.registerEndpointGauges(registers);
    const open = new KeptReading(() => this.backlog.countOpen());
    const ended = new KeptReading(() => this.backlog.countEnded(), { shownWhileStale: true });
    new Gauge({
      name: 'webhook_deliveries',
      help:
        'Deliveries by kind and status; the kind `event` adds up to events x endpoints (D33). Of those that have not ' +
        `ended ${MOST_OPEN_COUNTED} are counted; webhook_deliveries_counted_seconds says how old the others' count is.`,
      labelNames: ['kind', 'status'],
      registers,
      async collect() {
        this.reset();
        const counts = [await open.current(), await ended.current()];
        for (const { kind, status, count } of counts.flatMap((each): readonly DeliveryCount[] => each ?? []))
          this.inc({ kind, status }, count);
      },
    });
    new Gauge({
      name: 'webhook_deliveries_counted_seconds',
      help: 'Since when the count of deliveries that have ended is known; absent before the first.',
      registers,
      collect() {
        const ageMs = ended.ageMs();
        if (ageMs === null) this.remove();
        else this.set(ageMs / 1_000);
      },
    });
  }

  private registerEndpointGauges(registers: Registry[]): void {
    const facts = new KeptReading(() => this.backlog.readEndpoints());
    new Gauge({
      name: 'webhook_endpoints',
      help: 'Endpoints by status.',
      labelNames: ['status'],
      registers,
      async collect() {
        this.reset();
        for (const { status, count } of (await facts.current())?.endpoints ?? []) this.set({ status }, count);
      },
    });
    new Gauge({
      name: 'webhook_oldest_due_seconds',
      help: 'Age of the oldest delivery that is due and could be sent; 0 when there is none.',
      registers,
      async collect() {
        const known = await facts.current();
        // `reset` would leave a zero: this gauge has no labels.
        if (known) this.set(known.oldestDueSeconds);
        else this.remove();
      },
    });
  }
}
