import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { Registry } from 'prom-client';
import type { EntityManager } from 'typeorm';
import { readAgeSeconds } from '../../infra/database/index.js';
import { showReading } from '../../infra/kept-reading.js';
import { METRICS } from '../../infra/metrics.js';

/** As of orders: due since its time came or, where a worker has lost it, since its lease lapsed. */
const OLDEST_DUE = `
  SELECT extract(epoch FROM statement_timestamp() - greatest(next_attempt_at, lease_until))::float8 AS seconds
  FROM topups
  WHERE next_attempt_at <= statement_timestamp() AND (lease_until IS NULL OR lease_until <= statement_timestamp())
  ORDER BY next_attempt_at LIMIT 1`;
const OLDEST_PROCESSING = `
  SELECT extract(epoch FROM statement_timestamp() - created_at)::float8 AS seconds FROM topups
  WHERE status = 'processing' ORDER BY created_at LIMIT 1`;

/** Ages of top-ups in the whole database, each read by an index and apart from the other. */
@Injectable()
export class TopupMetrics {
  constructor(@Inject(METRICS) registry: Registry, @InjectEntityManager() manager: EntityManager) {
    showReading(
      registry,
      {
        name: 'topup_oldest_due_seconds',
        help: 'For how long a top-up has been due that no worker holds; 0 when there is none.',
      },
      () => readAgeSeconds(manager, OLDEST_DUE),
    );
    showReading(
      registry,
      {
        name: 'topup_oldest_processing_seconds',
        help: 'Age of the oldest top-up whose provider has not answered; 0 when there is none.',
      },
      () => readAgeSeconds(manager, OLDEST_PROCESSING),
    );
  }
}
