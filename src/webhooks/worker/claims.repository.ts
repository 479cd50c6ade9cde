import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../../infra/database/index.js';
import type { DeliveryEventType } from '../delivery.js';
import type { ClaimedDelivery } from './claimed-delivery.js';

/** Who holds a lease, and for how long. */
export interface LeaseTerms {
  readonly owner: string;
  readonly leaseMs: number;
}

/** Names one lease. */
export interface LeaseKey {
  readonly id: string;
  readonly fence: string;
}

interface ClaimRow {
  id: string;
  endpoint_id: string;
  event_type: DeliveryEventType;
  fence: string;
  counted_attempts: number;
  url: string;
  secret: string;
  previous_secret: string | null;
  body: string;
  lapsed_ago_ms: number | null;
  lapsed_ran_ms: number | null;
  due_at: string;
}

const NOW = 'statement_timestamp()';
const NOT_LEASED = `(d.lease_until IS NULL OR d.lease_until <= ${NOW})`;
const msSince = (from: string, to: string): string => `extract(epoch FROM ${to} - ${from})::float8 * 1000`;

/** SQL that leases due deliveries; every time is the database's (D40). */
@Injectable()
export class ClaimsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * Leases up to `slots` due deliveries of the endpoint, oldest first. The endpoint's state is part of the
   * statement: what is due at a disabled, blocked or deleted endpoint stays where it is (D31, D32).
   */
  async claim(terms: LeaseTerms, endpointId: string, slots: number): Promise<readonly ClaimedDelivery[]> {
    const { rows } = await sql<ClaimRow>(
      this.manager,
      `WITH due AS (
         SELECT d.id, d.claimed_at, d.lease_until
         FROM webhook_deliveries d
         WHERE d.endpoint_id = $1 AND d.status = 'pending' AND d.next_attempt_at <= ${NOW} AND ${NOT_LEASED}
           AND EXISTS (SELECT 1 FROM webhook_endpoints w
                       WHERE w.id = $1 AND w.enabled AND w.deleted_at IS NULL
                         AND (w.blocked_until IS NULL OR w.blocked_until <= ${NOW}))
         ORDER BY d.next_attempt_at, d.id
         LIMIT $2
         FOR UPDATE OF d SKIP LOCKED
       )
       UPDATE webhook_deliveries d
       SET lease_owner = $3, claimed_at = ${NOW}, lease_until = ${NOW} + $4::int * interval '1 millisecond',
           fence = d.fence + 1
       FROM due
       JOIN webhook_endpoints w ON w.id = $1
       WHERE d.id = due.id
       RETURNING d.id, d.endpoint_id, d.event_type, d.fence, d.counted_attempts, w.url, w.secret,
         CASE WHEN w.previous_secret_until > ${NOW} THEN w.previous_secret END AS previous_secret,
         coalesce(d.test_body, (SELECT e.body FROM events e WHERE e.id = d.event_id)) AS body,
         ${msSince('due.lease_until', NOW)} AS lapsed_ago_ms,
         ${msSince('due.claimed_at', 'due.lease_until')} AS lapsed_ran_ms,
         d.next_attempt_at::text AS due_at`,
      [endpointId, slots, terms.owner, terms.leaseMs],
    );
    return rows.sort(byDueTime).map(toClaimedDelivery);
  }

  /** Prolongs the leases that are still this process's; answers those. One statement, locks in id order (D40). */
  async renew(terms: LeaseTerms, leases: readonly LeaseKey[]): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      `WITH mine AS (
         SELECT d.id FROM webhook_deliveries d
         JOIN unnest($1::text[], $2::bigint[]) AS l (id, fence) ON l.id = d.id AND l.fence = d.fence
         WHERE d.lease_owner = $3
         ORDER BY d.id FOR UPDATE OF d
       )
       UPDATE webhook_deliveries d SET lease_until = ${NOW} + $4::int * interval '1 millisecond'
       FROM mine WHERE d.id = mine.id RETURNING d.id`,
      [leases.map((lease) => lease.id), leases.map((lease) => lease.fence), terms.owner, terms.leaseMs],
    );
    return rows.map((row) => row.id);
  }

  /** Gives a lease back without an attempt; the delivery is due again after `delayMs`. */
  async release(terms: LeaseTerms, lease: LeaseKey, delayMs: number): Promise<void> {
    await sql(
      this.manager,
      `UPDATE webhook_deliveries
       SET lease_owner = NULL, claimed_at = NULL, lease_until = NULL,
           next_attempt_at = CASE WHEN status = 'pending' AND $4::int > 0
             THEN ${NOW} + $4::int * interval '1 millisecond' ELSE next_attempt_at END
       WHERE id = $1 AND fence = $2 AND lease_owner = $3`,
      [lease.id, lease.fence, terms.owner, delayMs],
    );
  }

  /** Milliseconds until something of the endpoint may be claimed, 0 or less when it is due; null for nothing. */
  async msUntilNextDue(endpointId: string): Promise<number | null> {
    const { rows } = await sql<{ wait_ms: number }>(
      this.manager,
      `SELECT ${msSince(NOW, 'greatest(d.next_attempt_at, w.blocked_until)')} AS wait_ms
       FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id
       WHERE d.endpoint_id = $1 AND d.status = 'pending' AND ${NOT_LEASED} AND w.enabled AND w.deleted_at IS NULL
       ORDER BY d.next_attempt_at, d.id LIMIT 1`,
      [endpointId],
    );
    return rows[0]?.wait_ms ?? null;
  }

  /**
   * Endpoints after `after`, in id order, that have something to claim. Jumps from endpoint to endpoint through the
   * index, so that a disabled endpoint's backlog of a million costs one step.
   */
  async endpointsWithDueDeliveries(after: string, limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      `WITH RECURSIVE owed AS (
         (SELECT endpoint_id AS id FROM webhook_deliveries WHERE status = 'pending' AND endpoint_id > $1
          ORDER BY endpoint_id LIMIT 1)
         UNION ALL
         SELECT (SELECT d.endpoint_id FROM webhook_deliveries d WHERE d.status = 'pending' AND d.endpoint_id > owed.id
                 ORDER BY d.endpoint_id LIMIT 1)
         FROM owed WHERE owed.id IS NOT NULL
       )
       SELECT w.id FROM owed JOIN webhook_endpoints w ON w.id = owed.id
       WHERE w.enabled AND w.deleted_at IS NULL AND (w.blocked_until IS NULL OR w.blocked_until <= ${NOW})
         AND EXISTS (SELECT 1 FROM webhook_deliveries d
                     WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.next_attempt_at <= ${NOW}
                       AND ${NOT_LEASED})
       LIMIT $2`,
      [after, limit],
    );
    return rows.map((row) => row.id);
  }
}

function byDueTime(a: ClaimRow, b: ClaimRow): number {
  if (a.due_at !== b.due_at) return a.due_at < b.due_at ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

function toClaimedDelivery(row: ClaimRow): ClaimedDelivery {
  return {
    id: row.id,
    endpointId: row.endpoint_id,
    eventType: row.event_type,
    fence: row.fence,
    countedAttempts: row.counted_attempts,
    url: row.url,
    sealedSecrets: row.previous_secret === null ? [row.secret] : [row.secret, row.previous_secret],
    body: row.body,
    lapse: row.lapsed_ago_ms === null ? null : { agoMs: row.lapsed_ago_ms, ranMs: row.lapsed_ran_ms ?? 0 },
  };
}
