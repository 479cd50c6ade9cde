import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { Registry } from 'prom-client';
import type { EntityManager } from 'typeorm';
import { readAgeSeconds } from '../../infra/database/index.js';
import { showReading } from '../../infra/kept-reading.js';
import { METRICS } from '../../infra/metrics.js';

/** An order that no worker has begun is due since it was accepted. */
const OLDEST_PENDING = `
  SELECT extract(epoch FROM statement_timestamp() - created_at)::float8 AS seconds FROM orders
  WHERE status = 'pending' AND next_attempt_at <= statement_timestamp() ORDER BY next_attempt_at LIMIT 1`;
/** Due since its time came or, where a worker has lost it, since its lease lapsed. */
const OLDEST_DUE = `
  SELECT extract(epoch FROM statement_timestamp() - greatest(next_attempt_at, lease_until))::float8 AS seconds
  FROM orders
  WHERE next_attempt_at <= statement_timestamp() AND (lease_until IS NULL OR lease_until <= statement_timestamp())
  ORDER BY next_attempt_at LIMIT 1`;
const OLDEST_PROCESSING = `
  SELECT extract(epoch FROM statement_timestamp() - created_at)::float8 AS seconds FROM orders
  WHERE status = 'processing' ORDER BY created_at LIMIT 1`;

/** Ages of orders in the whole database, each read by an index and apart from the others: every worker shows the same. */
@Injectable()
export class OrderMetrics {
  constructor(@Inject(METRICS) registry: Registry, @InjectEntityManager() manager: EntityManager) {
    const show = (name: string, help: string, text: string): void =>
      showReading(registry, { name, help }, () => readAgeSeconds(manager, text));
    show(
      'order_oldest_pending_seconds',
      'Age of the oldest accepted order that no worker has begun; 0 when there is none.',
      OLDEST_PENDING,
    );
    show(
      'order_oldest_due_seconds',
      'For how long an order has been due that no worker holds; 0 when there is none.',
      OLDEST_DUE,
    );
    show(
      'order_oldest_processing_seconds',
      'Age of the oldest order whose provider has not answered; 0 when there is none.',
      OLDEST_PROCESSING,
    );
  }
}
