import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { type EntityManager, IsNull } from 'typeorm';
import type { Page } from '../common/page.js';
import { KeysetPages, type ListOptions, NOW, sql, type Tx } from '../infra/database/index.js';
import { PortalSessionEntity } from './portal-session.entity.js';

/** Lifetime of a code (D50). */
export const CODE_SECONDS = 300;

export type NewPortalSession = Pick<
  PortalSessionEntity,
  'id' | 'partnerId' | 'mintedBy' | 'actorId' | 'actorName' | 'scopes' | 'modes' | 'returnUrl' | 'codeHash'
> & { readonly ttlSeconds: number };

/** A session whose code was just exchanged for a cookie. */
export interface ExchangedSession {
  readonly id: string;
  readonly partnerId: string;
  readonly mintedBy: string;
  readonly actorId: string;
  readonly secondsLeft: number;
}

interface ExchangedRow {
  id: string;
  partner_id: string;
  minted_by: string;
  actor_id: string;
  seconds_left: number;
}

/** SQL of `portal_sessions`, except the cookie check (auth). All times use the database's clock (D40). */
@Injectable()
export class PortalSessionsRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  /** Its times begin now, not at the start of `tx`, which may have waited for a suspension or a revocation. */
  async insert(tx: Tx, session: NewPortalSession): Promise<PortalSessionEntity> {
    const { ttlSeconds, ...fields } = session;
    const after = (seconds: string) => () => `statement_timestamp() + ${seconds}::int * interval '1 second'`;
    await tx.manager
      .createQueryBuilder()
      .insert()
      .into(PortalSessionEntity)
      .values({
        ...fields,
        createdAt: () => NOW,
        codeExpiresAt: after(':codeSeconds'),
        expiresAt: after(':ttlSeconds'),
      })
      .setParameters({ codeSeconds: CODE_SECONDS, ttlSeconds })
      .execute();
    return tx.manager.findOneByOrFail(PortalSessionEntity, { id: session.id });
  }

  /**
   * Spends a code exactly once, because guard and write are one statement. Null for a code that is unknown, spent or
   * too old, and for a session that was revoked or whose partner was suspended in the meantime.
   */
  async exchange(tx: Tx, codeHash: Buffer, tokenHash: Buffer): Promise<ExchangedSession | null> {
    const { rows } = await sql<ExchangedRow>(
      tx.manager,
      `UPDATE portal_sessions s SET token_hash = $2, exchanged_at = statement_timestamp()
       FROM partners p
       WHERE s.code_hash = $1 AND s.exchanged_at IS NULL AND s.revoked_at IS NULL
         AND s.code_expires_at > statement_timestamp() AND s.expires_at > statement_timestamp()
         AND p.id = s.partner_id AND p.status = 'active' AND s.created_at > coalesce(p.suspended_at, '-infinity')
       RETURNING s.id, s.partner_id, s.minted_by, s.actor_id,
         ceil(extract(epoch FROM s.expires_at - statement_timestamp()))::int AS seconds_left`,
      [codeHash, tokenHash],
    );
    const [row] = rows;
    if (!row) return null;
    const {
      id,
      partner_id: partnerId,
      minted_by: mintedBy,
      actor_id: actorId,
      seconds_left: secondsLeft,
    } = row;
    return { id, partnerId, mintedBy, actorId, secondsLeft };
  }

  async find(partnerId: string, id: string, tx: Tx): Promise<PortalSessionEntity | null> {
    return tx.manager.findOneBy(PortalSessionEntity, { id, partnerId });
  }

  async list(partnerId: string, options: ListOptions): Promise<Page<PortalSessionEntity>> {
    const query = this.manager
      .createQueryBuilder(PortalSessionEntity, 't')
      .where('t.partnerId = :partnerId', { partnerId });
    return this.pages.list(query, options);
  }

  /** False when there is no such session or it is already revoked. */
  async revoke(tx: Tx, partnerId: string, id: string): Promise<boolean> {
    const open = { id, partnerId, revokedAt: IsNull() };
    const change = { revokedAt: () => 'clock_timestamp()' };
    const { affected } = await tx.manager.update(PortalSessionEntity, open, change);
    return affected === 1;
  }

  /** Returns how many were alive. Locks in id order, so that two concurrent calls do not deadlock. */
  async revokeAll(tx: Tx, partnerId: string): Promise<number> {
    const { affected } = await sql(
      tx.manager,
      `UPDATE portal_sessions SET revoked_at = clock_timestamp()
       WHERE id = ANY (ARRAY(SELECT id FROM portal_sessions
                             WHERE partner_id = $1 AND revoked_at IS NULL AND expires_at > statement_timestamp()
                             ORDER BY id FOR UPDATE))`,
      [partnerId],
    );
    return affected;
  }

  /** Deletes up to `limit` sessions that ended `days` days ago, and returns their number. */
  async purge(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM portal_sessions WHERE id = ANY (ARRAY(
         SELECT id FROM portal_sessions WHERE expires_at < now() - $1::int * interval '1 day'
         ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }
}
