import { Inject, Injectable, Module } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { Registry } from 'prom-client';
import type { EntityManager } from 'typeorm';
import { readAgeSeconds } from '../infra/database/index.js';
import { showReading } from '../infra/kept-reading.js';
import { METRICS } from '../infra/metrics.js';
import type { PurchaseKind } from './purchase.js';

/** A purchase that no worker has started has been due since it was accepted. */
const oldestPending = (table: PurchaseKind['table']): string => `
  SELECT extract(epoch FROM statement_timestamp() - created_at)::float8 AS seconds FROM ${table}
  WHERE status = 'pending' AND next_attempt_at <= statement_timestamp() ORDER BY next_attempt_at LIMIT 1`;

/** Due since the time of its next attempt or, if its worker died, since its lease lapsed. */
const oldestDue = (table: PurchaseKind['table']): string => `
  SELECT extract(epoch FROM statement_timestamp() - greatest(next_attempt_at, lease_until))::float8 AS seconds
  FROM ${table}
  WHERE next_attempt_at <= statement_timestamp() AND (lease_until IS NULL OR lease_until <= statement_timestamp())
  ORDER BY next_attempt_at LIMIT 1`;

const oldestProcessing = (table: PurchaseKind['table']): string => `
  SELECT extract(epoch FROM statement_timestamp() - created_at)::float8 AS seconds FROM ${table}
  WHERE status = 'processing' ORDER BY created_at LIMIT 1`;

/**
 * Ages of purchases in the whole database: every worker reports the same. Each is a separate query that uses an index.
 */
@Injectable()
export class PurchaseMetrics {
  constructor(@Inject(METRICS) registry: Registry, @InjectEntityManager() manager: EntityManager) {
    const show = (name: string, help: string, text: string): void =>
      showReading(registry, { name, help: `${help}; 0 if there is none.` }, () =>
        readAgeSeconds(manager, text),
      );
    show(
      'order_oldest_pending_seconds',
      'Age of the oldest accepted order that no worker has started',
      oldestPending('orders'),
    );
    for (const [name, table, one, noun] of [
      ['order', 'orders', 'an order', 'order'],
      ['topup', 'topups', 'a top-up', 'top-up'],
    ] as const) {
      const due = `Time for which ${one} without a worker has been overdue`;
      show(`${name}_oldest_due_seconds`, due, oldestDue(table));
      const processing = `Age of the oldest ${noun} without an outcome from its provider`;
      show(`${name}_oldest_processing_seconds`, processing, oldestProcessing(table));
    }
  }
}

@Module({ providers: [PurchaseMetrics] })
export class PurchaseMetricsModule {}
