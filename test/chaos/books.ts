import type { TestDatabase } from '../harness/index.js';

/** The stored state of one order. */
export interface BookedOrder {
  readonly id: string;
  readonly status: string;
  readonly package_id: string;
  readonly quantity: number;
  readonly quantity_issued: number;
  readonly esims: number;
  /** Number of purchases at the provider under the order's reference. */
  readonly purchases: number;
  /** Number of `order.issued` and `order.failed` events. */
  readonly events: number;
}

export async function readOrders({ pool }: TestDatabase): Promise<BookedOrder[]> {
  const { rows } = await pool.query<BookedOrder>(
    `SELECT o.id, o.status, o.package_id, o.quantity, o.quantity_issued,
            (SELECT count(*)::int FROM esims e WHERE e.order_id = o.id) AS esims,
            (SELECT count(*)::int FROM sandbox_upstream_orders u WHERE u.reference = o.provider_reference) AS purchases,
            (SELECT count(*)::int FROM events v WHERE v.body::jsonb -> 'data' ->> 'order_id' = o.id) AS events
     FROM orders o ORDER BY o.id`,
  );
  return rows;
}

interface BookedEvent {
  readonly id: string;
  readonly body: string;
  readonly delivery_id: string;
  readonly delivery_status: string;
}

export async function readEvents({ pool }: TestDatabase): Promise<BookedEvent[]> {
  const { rows } = await pool.query<BookedEvent>(
    `SELECT v.id, v.body, d.id AS delivery_id, d.status AS delivery_status
     FROM events v LEFT JOIN webhook_deliveries d ON d.event_id = v.id ORDER BY v.id`,
  );
  return rows;
}

export const OPEN_ORDERS = `orders WHERE status NOT IN ('issued', 'partially_issued', 'failed')`;

export async function count({ pool }: TestDatabase, from: string): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${from}`);
  return rows[0]!.n;
}
