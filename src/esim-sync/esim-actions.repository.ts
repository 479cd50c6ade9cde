import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { EsimEntity } from '../esims/index.js';
import { rowToEntity, selectList, sql } from '../infra/database/index.js';

/** A requested action that a worker has claimed. The claim is void once the row's fence is higher. */
export interface ClaimedAction {
  readonly esim: EsimEntity;
  /** Whether an earlier claim may have sent it. This claim has recorded that it may be sent now. */
  readonly mayBeSent: boolean;
  /** Milliseconds since it may have been sent first. */
  readonly sentForMs: number;
  /** A time of `performance.now()` before the claim was written. */
  readonly sendWindowStart: number;
}

/** SQL of requested actions. Due times and leases use the database's clock (D40). */
@Injectable()
export class EsimActionsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Providers whose eSIMs have a due action. */
  async listProvidersDue(): Promise<readonly string[]> {
    const { rows } = await sql<{ provider: string }>(
      this.manager,
      'SELECT DISTINCT provider FROM esims WHERE action_due_at <= now()',
    );
    return rows.map(({ provider }) => provider);
  }

  /**
   * Claims up to `limit` due actions, longest due first. Records before the call that it may be sent, so that a later
   * claim looks for its effect instead of sending it again.
   */
  async claim(provider: string, limit: number, leaseMs: number): Promise<readonly ClaimedAction[]> {
    const sendWindowStart = performance.now();
    const { rows } = await sql<{ may_be_sent: boolean; sent_for_ms: number }>(
      this.manager,
      `UPDATE esims e
       SET action_due_at = now() + $3 * interval '1 millisecond', action_fence = e.action_fence + 1,
           action_sent_at = coalesce(e.action_sent_at, now())
       FROM (SELECT id, action_sent_at FROM esims WHERE provider = $1 AND action_due_at <= now()
             ORDER BY action_due_at, id LIMIT $2 FOR UPDATE SKIP LOCKED) AS due
       WHERE e.id = due.id
       RETURNING due.action_sent_at IS NOT NULL AS may_be_sent,
         (extract(epoch FROM now() - coalesce(due.action_sent_at, now())) * 1000)::float8 AS sent_for_ms,
         ${selectList(this.manager, EsimEntity, 'e')}`,
      [provider, limit, leaseMs],
    );
    return rows.map((row) => ({
      esim: rowToEntity(this.manager, EsimEntity, row),
      mayBeSent: row.may_be_sent,
      sentForMs: row.sent_for_ms,
      sendWindowStart,
    }));
  }

  /** Releases a claim for `delayMs`. @param sent whether the call may have been sent */
  async postpone(
    { esim }: ClaimedAction,
    delayMs: number,
    { sent }: { readonly sent: boolean },
  ): Promise<void> {
    await sql(
      this.manager,
      `UPDATE esims SET action_due_at = now() + $3 * interval '1 millisecond',
         action_sent_at = CASE WHEN $4 THEN action_sent_at END
       WHERE id = $1 AND action_fence = $2 AND pending_action IS NOT NULL`,
      [esim.id, esim.actionFence, delayMs, sent],
    );
  }
}
