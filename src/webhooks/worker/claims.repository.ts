import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
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

/** What one look at an endpoint came to. */
export interface Claim {
  readonly deliveries: readonly ClaimedDelivery[];
  /** Milliseconds until the next look is worth it, 0 or less for now; null: somebody else asks, or nothing is owed. */
  readonly nextLookMs: number | null;
  /** Nothing is due that was not claimed, and the window has room: no end of an attempt needs to look again. */
  readonly isDrained: boolean;
}

interface LookRow {
  id: null;
  next_look_ms: number | null;
  room: number | null;
}

interface ClaimRow {
  id: string;
  event_type: DeliveryEventType;
  fence: string;
  counted_attempts: number;
  url: string;
  secret: string;
  previous_secret: string | null;
  body: string;
  lapsed_ago_ms: number | null;
  lapsed_ran_ms: number | null;
  due_text: string;
}

const NOW = 'statement_timestamp()';
const NOT_LEASED = `(d.lease_until IS NULL OR d.lease_until <= ${NOW})`;

/** SQL that leases due deliveries; every time is the database's (D40). */
@Injectable()
export class ClaimsRepository {
  private readonly mostInFlight: number;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    @Inject(APP_CONFIG) config: AppConfig,
  ) {
    this.mostInFlight = config.webhooks.concurrencyPerEndpoint;
  }

  /**
   * Leases up to `slots` due deliveries of the endpoint, oldest first, and never more than its window leaves over all
   * workers (D34). What is due at a disabled, blocked or deleted endpoint stays where it is (D31, D32).
   */
  async claim(terms: LeaseTerms, endpointId: string, slots: number): Promise<Claim> {
    const { rows } = await sql<ClaimRow | LookRow>(
      this.manager,
      'SELECT *, due_at::text AS due_text FROM claim_webhook_deliveries($1, $2, $3, $4, $5)',
      [endpointId, slots, this.mostInFlight, terms.owner, terms.leaseMs],
    );
    const look = rows.find((row): row is LookRow => row.id === null);
    const claimed = rows.filter((row): row is ClaimRow => row.id !== null).sort(byDueTime);
    return {
      deliveries: claimed.map((row) => toClaimedDelivery(endpointId, row)),
      nextLookMs: look?.next_look_ms ?? null,
      isDrained: claimed.length < slots && (look?.room ?? 0) > 0,
    };
  }

  /**
   * Prolongs the leases that are still this process's; answers those. A row that somebody has locked is skipped: it
   * must cost no other its lease, and its own outlives two beats.
   */
  async renew(terms: LeaseTerms, leases: readonly LeaseKey[]): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      `WITH mine AS (
         SELECT d.id FROM webhook_deliveries d
         JOIN unnest($1::text[], $2::bigint[]) AS l (id, fence) ON l.id = d.id AND l.fence = d.fence
         WHERE d.lease_owner = $3
         ORDER BY d.id FOR UPDATE OF d SKIP LOCKED
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
                       AND ${NOT_LEASED} AND (w.discard_before IS NULL OR d.created_at >= w.discard_before))
       LIMIT $2`,
      [after, limit],
    );
    return rows.map((row) => row.id);
  }
}

function byDueTime(a: ClaimRow, b: ClaimRow): number {
  if (a.due_text !== b.due_text) return a.due_text < b.due_text ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

function toClaimedDelivery(endpointId: string, row: ClaimRow): ClaimedDelivery {
  return {
    id: row.id,
    endpointId,
    eventType: row.event_type,
    fence: row.fence,
    countedAttempts: row.counted_attempts,
    url: row.url,
    sealedSecrets: row.previous_secret === null ? [row.secret] : [row.secret, row.previous_secret],
    body: row.body,
    lapse: row.lapsed_ago_ms === null ? null : { agoMs: row.lapsed_ago_ms, ranMs: row.lapsed_ran_ms ?? 0 },
  };
}
