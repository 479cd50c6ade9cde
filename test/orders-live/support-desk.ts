import { expect } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import { type ApiAnswer, eventually } from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import type { LiveBuyer, LiveShop } from './live-shop.js';

type Ending = 'mark_issued' | 'mark_failed';

/** What support does with orders of a shop, and how they come to it. */
export class SupportDesk {
  constructor(private readonly shop: LiveShop) {}

  reconcile(id: string, action: Ending | 'requery'): Promise<ApiAnswer> {
    const body = { action, note: 'asked the wholesaler' };
    return this.shop.office.admin.post(`/internal/v1/orders/${id}/reconcile`, body);
  }

  /** What the provider shows of the order now. */
  async look(id: string): Promise<Json> {
    const answer = await this.shop.office.admin.get(`/internal/v1/orders/${id}/upstream`);
    expect(answer.status, answer.text).toBe(200);
    return answer.body.data as Json;
  }

  /** Refused with a detail like `why`, and nothing has changed. */
  async expectRefused(id: string, action: Ending, why: RegExp): Promise<void> {
    const before = await this.shop.row(id);
    const answer = await this.reconcile(id, action);
    expectProblem(answer, 409, 'conflict');
    expect(answer.body.detail).toMatch(why);
    const { status, fence } = await this.shop.row(id);
    expect({ status, fence }).toEqual({ status: before['status'], fence: before['fence'] });
  }

  async change(id: string, assignment: string): Promise<void> {
    await this.shop.database.pool.query(`UPDATE orders SET ${assignment} WHERE id = $1`, [id]);
  }

  /** Waits until no worker is at the order, nor will be. */
  async atRest(id: string): Promise<Json> {
    await eventually(`order ${id} waits`, async () => {
      const { rowCount } = await this.shop.database.pool.query(
        `UPDATE orders SET next_attempt_at = now() + interval '1 hour'
         WHERE id = $1 AND lease_until IS NULL AND status IN ('processing', 'canceling') AND upstream_attempts > 0`,
        [id],
      );
      return rowCount === 1;
    });
    return this.shop.row(id);
  }

  /** Puts the provider back to where it answers everything. */
  calmUpstream(): void {
    Object.assign(this.shop.liveProvider, { findError: null, readLagMs: 0, script: [] });
    this.shop.liveProvider.cancelState = () => ({ state: 'canceled' });
  }
}

export async function eventsOf({ live }: LiveBuyer, id: string): Promise<Json[]> {
  return (await readFeed(live)).filter((event) => event['data'].order_id === id);
}
