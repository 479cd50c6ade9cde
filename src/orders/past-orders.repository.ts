import { Injectable } from '@nestjs/common';
import { sql, type Tx } from '../infra/database/index.js';
import type { OrderEntity } from './order.js';

/**
 * A top-up of eSIM `e` that is open, or younger than `$1` days. Each is asked for by the index in whose order it comes
 * first: an eSIM may have any number of others.
 */
const TOPUP_THAT_KEEPS_ITS_ORDER = `LATERAL (
  (SELECT 1 FROM topups t WHERE t.esim_id = e.id AND t.created_at >= now() - $1::int * interval '1 day'
   ORDER BY t.created_at DESC LIMIT 1)
  UNION ALL
  (SELECT 1 FROM topups t WHERE t.esim_id = e.id AND t.status IN ('pending', 'processing') LIMIT 1))`;

/** Where a walk over orders by age is; the time as PostgreSQL writes it, to the microsecond. */
export interface OrderAge {
  readonly createdAt: string;
  readonly id: string;
}

/** Orders past their retention, locked. */
export interface PastOrders {
  readonly orders: readonly Pick<OrderEntity, 'id' | 'providerReference'>[];
  /** How many were locked, with those that a top-up keeps. */
  readonly looked: number;
  readonly last: OrderAge | null;
}

/** SQL of `orders` for the purge of what Sandbox has sold. */
@Injectable()
export class PastOrdersRepository {
  /**
   * Locks up to `limit` Sandbox orders that are older than `days`, they and all that was bought for them, the oldest first
   * and none up to `after` (D44).
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
      // A top-up that was accepted before the lock, and behind the snapshot of the statement that took it.
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
