import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../../common/mode.js';
import { Batcher } from '../../infra/batcher.js';
import { sql } from '../../infra/database/index.js';
import { parseTraceparent, type TraceContext } from '../../infra/tracing/index.js';
import { IS_OPEN } from '../webhook-delivery.entity.js';

/** The extra data that an attempt's span needs. */
export interface DeliveryTrace {
  /** Trace of the work that recorded the event; null for a test, and for untraced work. */
  readonly cause: TraceContext | null;
  /** Place of the attempt in the log, from 1. */
  readonly number: number;
}

/** The fields by which a statement finds a delivery's trace. */
interface TracedDelivery {
  readonly id: string;
  readonly mode: Mode;
  readonly body: string | null;
}

const MAX_BATCH = 500;
const EVENT_ID = /^\{"id":"(evt_[0-9A-HJKMNP-TV-Z]{26})"/;

/**
 * Reads the traces of claimed deliveries. Runs only when tracing is on, in a separate statement, so that the claim
 * costs nothing for tracing (D53).
 */
@Injectable()
export class DeliveryTracesRepository {
  /** The deliveries of one claim begin in one turn of the event loop, so that one statement reads their traces. */
  private readonly batches = new Batcher<TracedDelivery, DeliveryTrace | null>({
    handle: async (deliveries) => {
      const byMode = [...Map.groupBy(deliveries, ({ mode }) => mode)];
      const traces = new Map((await Promise.all(byMode.map(([mode, some]) => this.read(mode, some)))).flat());
      return deliveries.map(({ id }) => traces.get(id) ?? null);
    },
    maxItems: MAX_BATCH,
    gather: 'microtask',
    concurrency: 2,
  });

  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Null when the trace is unknown or the statement fails; the delivery is sent anyway. Never rejects. */
  find(delivery: TracedDelivery): Promise<DeliveryTrace | null> {
    return this.batches.add(delivery).catch(() => null);
  }

  /** The event ids in the bodies select the days to read. */
  private async read(
    mode: Mode,
    deliveries: readonly TracedDelivery[],
  ): Promise<(readonly [string, DeliveryTrace])[]> {
    const { rows } = await sql<{ id: string; attempt_count: number; traceparent: string | null }>(
      this.manager,
      `SELECT d.id, d.attempt_count, e.traceparent
       FROM webhook_deliveries d
       LEFT JOIN events e ON e.id = d.event_id AND e.mode = $3 AND e.id = ANY ($2::text[])
       WHERE d.id = ANY ($1::text[]) AND d.${IS_OPEN}`,
      [
        deliveries.map(({ id }) => id),
        deliveries.flatMap(({ body }) => EVENT_ID.exec(body ?? '')?.[1] ?? []),
        mode,
      ],
    );
    return rows.map(({ id, attempt_count, traceparent }) => [
      id,
      { cause: parseTraceparent(traceparent), number: attempt_count + 1 },
    ]);
  }
}
