import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../../common/mode.js';
import { sql } from '../../infra/database/index.js';
import { IN_FLIGHT, IS_OPEN, STORE_GIVEN_UP } from '../webhook-delivery.entity.js';

/** Kinds of deliveries that end without having been delivered. */
export type Discards =
  /** Deliveries discarded by the endpoint's row (D32, DELETE); with `dueFrom`, only those due then or later. */
  | { readonly of: 'endpoint'; readonly endpointId: string; readonly dueFrom: string | null }
  /** Deliveries discarded during an attempt that will never be recorded: its worker died or put the delivery back. */
  | { readonly of: 'abandoned' }
  /**
   * Deliveries older than `days` days, of endpoints that have been disabled for as long. They have been held for at
   * least 30 days (D32, D44).
   */
  | { readonly of: 'held'; readonly mode: Mode; readonly days: number };

/** An endpoint that has discarded everything created before a time, as PostgreSQL writes it, to the microsecond. */
export interface GivingUp {
  readonly endpointId: string;
  readonly before: string;
}

/** Skips deliveries with an attempt in flight: they end when its outcome is recorded, and a 2xx still counts. */
const NOT_IN_FLIGHT = `NOT ${IN_FLIGHT}`;

/** Condition on a delivery `d` and its endpoint `w`, with `parametersOf` from $2 on. */
const OF_ENDPOINT = `d.endpoint_id = $2 AND d.status = 'pending' AND d.created_at < w.discard_before
  AND ($3::timestamptz IS NULL OR d.next_attempt_at >= $3)`;
const ABANDONED = `d.status = 'discarding'`;
const HELD = `d.status = 'pending' AND NOT w.enabled AND w.mode = $2
  AND w.updated_at < now() - $3::int * interval '1 day' AND d.created_at < now() - $3::int * interval '1 day'`;

/** $1 lists the ids to skip. */
const LISTED = `
  SELECT d.id FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id
  WHERE d.id <> ALL ($1::text[]) AND ${NOT_IN_FLIGHT}`;
/** $1 lists the ids to end. The condition is checked again, because a delivery may have changed since it was listed. */
const DELETED = `
  DELETE FROM webhook_deliveries WHERE ${IS_OPEN} AND id = ANY (ARRAY(
    SELECT d.id FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id
    WHERE d.id = ANY ($1::text[]) AND ${NOT_IN_FLIGHT}`;
const DISCARDED = `FOR UPDATE OF d SKIP LOCKED)) ${STORE_GIVEN_UP} RETURNING id`;

const QUERIES: Readonly<Record<Discards['of'], { readonly list: string; readonly discard: string }>> = {
  endpoint: {
    // Read in the order of the pending index: the table may hold millions of ended rows.
    list: `WITH page AS (${LISTED} AND ${OF_ENDPOINT} ORDER BY d.next_attempt_at, d.id LIMIT $4) SELECT id FROM page`,
    discard: `WITH given_up AS (${DELETED} AND ${OF_ENDPOINT} ${DISCARDED}`,
  },
  abandoned: {
    list: `WITH page AS (${LISTED} AND ${ABANDONED} LIMIT $2) SELECT id FROM page`,
    discard: `WITH given_up AS (${DELETED} AND ${ABANDONED} ${DISCARDED}`,
  },
  held: {
    list: `WITH page AS (${LISTED} AND ${HELD} LIMIT $4) SELECT id FROM page`,
    // The lock keeps the endpoint from being enabled in the meantime.
    discard: `WITH given_up AS (${DELETED} AND ${HELD} FOR SHARE OF w SKIP LOCKED ${DISCARDED}`,
  },
};

/** SQL that ends, row by row, the deliveries that an endpoint's row discards or that were held for too long. */
@Injectable()
export class DiscardsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Endpoints with open deliveries and a discard time. */
  async listGivingUp(): Promise<readonly GivingUp[]> {
    const { rows } = await sql<{ id: string; before: string }>(
      this.manager,
      `SELECT w.id, w.discard_before::text AS before FROM webhook_endpoints w
       WHERE w.discard_before IS NOT NULL
         AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.status = 'pending')`,
    );
    return rows.map(({ id, before }) => ({ endpointId: id, before }));
  }

  /** Ids of up to `limit` deliveries that `which` names, except `passedOver`. */
  async list(which: Discards, limit: number, passedOver: readonly string[]): Promise<readonly string[]> {
    const parameters = [passedOver, ...parametersOf(which), limit];
    const { rows } = await sql<{ id: string }>(this.manager, QUERIES[which.of].list, parameters);
    return rows.map(({ id }) => id);
  }

  /**
   * In one statement, ends and returns those of `ids` that `which` still names and no other transaction has locked.
   * Ended deliveries move to the partition of their day.
   */
  async discard(which: Discards, ids: readonly string[]): Promise<readonly string[]> {
    const parameters = [ids, ...parametersOf(which)];
    const { rows } = await sql<{ id: string }>(this.manager, QUERIES[which.of].discard, parameters);
    return rows.map(({ id }) => id);
  }

  /**
   * Removes discard times that have been applied. No transaction that could still create an older delivery runs for two
   * minutes. During a resend, keeps the time, because the resend orders its due times by it.
   */
  async forgetOld(): Promise<void> {
    await sql(
      this.manager,
      `UPDATE webhook_endpoints w SET discard_before = NULL
       WHERE w.deleted_at IS NULL AND w.discard_before < now() - interval '2 minutes'
         AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d
                         WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.created_at < w.discard_before)
         AND NOT EXISTS (SELECT 1 FROM webhook_backlog_jobs j
                         WHERE j.endpoint_id = w.id AND j.status = 'running' AND j.kind = 'resend')`,
    );
  }
}

function parametersOf(which: Discards): readonly (string | number | null)[] {
  if (which.of === 'endpoint') return [which.endpointId, which.dueFrom];
  return which.of === 'held' ? [which.mode, which.days] : [];
}
