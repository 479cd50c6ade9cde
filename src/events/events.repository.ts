import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Page } from '../common/page.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { KeysetPages, type ListOptions, sql, toSafeInteger } from '../infra/database/index.js';
import type { EventType } from './event.js';
import { EventEntity } from './event.entity.js';

/** One line of the feed. */
export interface FeedItem {
  readonly position: number;
  readonly body: string;
}

/** Any number; it names this lock among the advisory locks of the database. */
const POSITIONS_LOCK = 7_302_114;
const POSITIONS_BATCH = 5_000;

/** SQL of `events`. */
@Injectable()
export class EventsRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  async findById(scope: TenantScope, id: string): Promise<EventEntity | null> {
    return this.manager.findOneBy(EventEntity, { partnerId: scope.partnerId, mode: scope.mode, id });
  }

  /** Events of both modes, newest first: support's view. */
  async listOfPartner(
    partnerId: string,
    type: EventType | undefined,
    options: ListOptions,
  ): Promise<Page<EventEntity>> {
    const query = this.manager
      .createQueryBuilder(EventEntity, 't')
      .where('t.partner_id = :partnerId', { partnerId });
    if (type !== undefined) query.andWhere('t.type = :type', { type });
    return this.pages.list(query, options);
  }

  /** Events after `position`, in feed order, at most `limit`. */
  async listAfter(
    scope: TenantScope,
    position: number,
    type: EventType | undefined,
    limit: number,
  ): Promise<readonly FeedItem[]> {
    const { rows } = await sql<{ position: string; body: string }>(
      this.manager,
      `SELECT position, body FROM events
       WHERE partner_id = $1 AND mode = $2 AND position > $3 AND ($4::text IS NULL OR type = $4)
       ORDER BY position LIMIT $5`,
      [scope.partnerId, scope.mode, position, type ?? null, limit],
    );
    return rows.map((row) => ({ position: toSafeInteger(row.position), body: row.body }));
  }

  /** The last position of partner and mode, of whatever type; 0 when there is none. */
  async lastPosition({ partnerId, mode }: TenantScope): Promise<number> {
    const { rows } = await sql<{ position: string }>(
      this.manager,
      `SELECT position FROM events WHERE partner_id = $1 AND mode = $2 AND position IS NOT NULL
       ORDER BY position DESC LIMIT 1`,
      [partnerId, mode],
    );
    return toSafeInteger(rows[0]?.position ?? 0);
  }

  /**
   * Gives positions to committed events that have none. One transaction at a time, under a lock held to its
   * commit: whoever reads a position can be sure that no smaller one will appear later (D39).
   */
  async assignPositions(): Promise<number> {
    return this.manager.transaction(async (manager) => {
      await sql(manager, 'SELECT pg_advisory_xact_lock($1)', [POSITIONS_LOCK]);
      const { affected } = await sql(
        manager,
        `UPDATE events e SET position = n.position
         FROM (SELECT id, nextval('event_positions') AS position
               FROM (SELECT id FROM events WHERE position IS NULL ORDER BY created_at, id LIMIT $1) AS waiting) AS n
         WHERE e.id = n.id`,
        [POSITIONS_BATCH],
      );
      return affected;
    });
  }

  async hasUnpositioned(): Promise<boolean> {
    const { rows } = await sql(this.manager, 'SELECT 1 FROM events WHERE position IS NULL LIMIT 1');
    return rows.length > 0;
  }
}
