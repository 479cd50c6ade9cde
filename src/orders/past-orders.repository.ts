import { Injectable } from '@nestjs/common';
import { sql, type Tx } from '../infra/database/index.js';
import type { OrderEntity } from './order.js';

/**
 * A top-up of eSIM `e` that is open, or younger than `$1` days. Each case uses an index that returns the match first,
 * because an eSIM may have any number of other top-ups.
 */
const TOPUP_THAT_KEEPS_ITS_ORDER = `LATERAL (
  (SELECT 1 FROM topups t WHERE t.esim_id = e.id AND t.created_at >= now() - $1::int * interval '1 day'
   ORDER BY t.created_at DESC LIMIT 1)
  UNION ALL
  (SELECT 1 FROM topups t WHERE t.esim_id = e.id AND t.status IN ('pending', 'processing') LIMIT 1))`;

/** Position of a walk over orders by age; PostgreSQL's text of the time, to the microsecond. */
export interface OrderAge {
  readonly createdAt: string;
  readonly id: string;
}

/** Orders past their retention, locked. */
export interface PastOrders {
  readonly orders: readonly Pick<OrderEntity, 'id' | 'providerReference'>[];
  /** Number of locked orders, including those kept by a top-up. */
  readonly looked: number;
  readonly last: OrderAge | null;
}

/** SQL of `orders` for purging Sandbox sales. */
@Injectable()
export class PastOrdersRepository {
  /**
   * Locks up to `limit` Sandbox orders after `after`, oldest first, that are older than `days` together with everything
   * bought for them (D44).
   */
  async lockSandboxPast(
    tx: Tx,
    days: number,
    { after, limit }: { readonly after: OrderAge | null; readonly limit: number },
  ): Promise<PastOrders> {
    const { rows } = await sql<{ id: string; reference: string; created_at: string }>(
      tx.manager,
      `SELECT o.id, o.provider_reference AS reference, o.created_at::text FROM orders o
       WHERE o.mode = 'sandbox' AND o.created_at < now() - $1::int * interval '1 day'
         AND o.status NOT IN ('pending', 'processing', 'canceling')
         AND (o.created_at, o.id) > (coalesce($3::timestamptz, '-infinity'), $4)
         AND NOT EXISTS (SELECT 1 FROM esims e, ${TOPUP_THAT_KEEPS_ITS_ORDER} WHERE e.order_id = o.id)
       ORDER BY o.created_at, o.id LIMIT $2 FOR UPDATE OF o SKIP LOCKED`,
      [days, limit, after?.createdAt ?? null, after?.id ?? ''],
    );
    const { rows: kept } = await sql<{ id: string }>(
      tx.manager,
      // Finds a top-up that was accepted before the lock but after the snapshot of the locking statement.
      `SELECT DISTINCT e.order_id AS id FROM esims e, ${TOPUP_THAT_KEEPS_ITS_ORDER}
       WHERE e.order_id = ANY ($2)`,
      [days, rows.map(({ id }) => id)],
    );
    const keeps = new Set(kept.map(({ id }) => id));
    const orders = rows
      .filter(({ id }) => !keeps.has(id))
      .map(({ id, reference }) => ({ id, providerReference: reference }));
    const last = rows.at(-1);
    return { orders, looked: rows.length, last: last ? { createdAt: last.created_at, id: last.id } : null };
  }

  async delete(tx: Tx, ids: readonly string[]): Promise<void> {
    await sql(tx.manager, 'DELETE FROM orders WHERE id = ANY ($1)', [ids]);
  }
}
