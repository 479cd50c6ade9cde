import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { boundedCache } from '../../infra/bounded-cache.js';
import { readBodyInItsDay } from '../../events/index.js';
import { prepared, sql } from '../../infra/database/index.js';
import type { Claim, ClaimRequest, GroupOwner, JobSource } from '../../infra/jobs/index.js';
import type { DeliveryEventType } from '../delivery.js';
import { IS_KEPT, IS_OPEN, STORE_GIVEN_UP } from '../webhook-delivery.entity.js';

/** A delivery under this process's lease, with all that one attempt needs. */
export interface ClaimedDelivery {
  readonly id: string;
  readonly endpointId: string;
  readonly mode: Mode;
  readonly eventType: DeliveryEventType;
  /** Grows with every claim: a worker that lost the lease can no longer write. A bigint, kept as text. */
  readonly fence: string;
  /** Attempts before this one that count among the six (D30). */
  readonly countedAttempts: number;
  readonly url: string;
  /** Sealed signing secrets, newest first (D29). */
  readonly sealedSecrets: readonly string[];
  /** Whether the headers of Standard Webhooks go with it (D49). */
  readonly standard: boolean;
  /** The stored bytes (D28); null when the claim did not see the event: see `findBody`. */
  readonly body: string | null;
  /** Set when the lease before this one lapsed: its attempt was interrupted and must be logged first (D30). */
  readonly lapse: LapsedLease | null;
}

export interface LapsedLease {
  /** How long ago the lease lapsed, and how long the attempt had been under way then; milliseconds. */
  readonly agoMs: number;
  readonly ranMs: number;
}

/** Names one lease. */
type LeaseKey = Pick<ClaimedDelivery, 'id' | 'fence'>;

/** Of every row of a claim: the endpoint, its partner and its mode. */
interface OwnerRow {
  endpoint_id: string;
  partner_id: string;
  mode: Mode;
}

/** The last row of a claim: it is no delivery, and says when to claim again. */
interface NextRow extends OwnerRow {
  id: null;
  next_look_ms: number | null;
  room: number | null;
}

interface ClaimRow extends OwnerRow {
  id: string;
  event_type: DeliveryEventType;
  fence: string;
  counted_attempts: number;
  url: string;
  standard: boolean;
  secret: string;
  previous_secret: string | null;
  body: string | null;
  lapsed_ago_ms: number | null;
  lapsed_ran_ms: number | null;
  due_text: string;
}

const ENDPOINTS_KEPT = 50_000;
/** So soon a claim that found the window full of others' attempts asks to be repeated (migration 1763700000043) ... */
const FULL_LOOK_MS = 500;
/** ... for so long: by then the endpoint hangs, and a thousand such would keep PostgreSQL busy with claims. */
const LOOKING_FOR_MS = 10_000;
const NOW = 'statement_timestamp()';
const NOT_LEASED = `(d.lease_until IS NULL OR d.lease_until <= ${NOW})`;

/** All that an attempt needs comes along: nothing is read after it. Named: a prepared statement must not read more after a migration. */
const CLAIM = prepared(`
  SELECT endpoint_id, partner_id, mode, standard, id, event_type, fence, counted_attempts, url, secret, previous_secret,
         body, lapsed_ago_ms, lapsed_ran_ms, due_at::text AS due_text, next_look_ms, room
  FROM claim_many_webhook_deliveries($1, $2, $3, $4, $5)`);

/** SQL that leases due deliveries; every time is the database's (D40). */
@Injectable()
export class DeliveryJobsRepository implements JobSource<ClaimedDelivery> {
  /** Of the leases of this process. */
  readonly owner = `worker-${process.pid}-${randomUUID()}`;
  private readonly leaseMs: number;
  private readonly mostInFlight: number;
  /** An endpoint never changes hands. */
  private readonly owners = boundedCache<GroupOwner>(ENDPOINTS_KEPT);
  /** Since when other workers' attempts have filled an endpoint's window, by `performance.now()`. */
  private readonly fullSince = boundedCache<number>(ENDPOINTS_KEPT);

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'webhooks' | 'leaseMs'>,
  ) {
    this.leaseMs = config.leaseMs;
    this.mostInFlight = config.webhooks.concurrencyPerEndpoint;
  }

  async claim(endpointId: string, limit: number): Promise<Claim<ClaimedDelivery>> {
    const [claim] = await this.claimMany([{ group: endpointId, limit }]);
    return claim!;
  }

  /**
   * Leases up to `limit` due deliveries of each endpoint, oldest first, and never more than its window leaves over all
   * workers (D34). What is due at a disabled, blocked or deleted endpoint stays where it is (D31, D32): see
   * `isClaimable` in delivery-rules.ts. There is no more when nothing due is left and the window has room.
   */
  async claimMany(requests: readonly ClaimRequest[]): Promise<readonly Claim<ClaimedDelivery>[]> {
    const { rows } = await sql<ClaimRow | NextRow>(this.manager, CLAIM, [
      requests.map(({ group }) => group),
      requests.map(({ limit }) => limit),
      this.mostInFlight,
      this.owner,
      this.leaseMs,
    ]);
    const byEndpoint = Map.groupBy(rows, (row) => row.endpoint_id);
    return requests.map(({ group, limit }) => this.toClaim(group, limit, byEndpoint.get(group) ?? []));
  }

  private toClaim(
    endpointId: string,
    limit: number,
    rows: readonly (ClaimRow | NextRow)[],
  ): Claim<ClaimedDelivery> {
    if (rows[0]) this.owners.set(endpointId, toOwner(rows[0]));
    const next = rows.find((row): row is NextRow => row.id === null);
    const claimed = rows.filter((row): row is ClaimRow => row.id !== null).sort(byDueTime);
    const waitMs = next?.next_look_ms ?? null;
    const isFull = claimed.length === 0 && waitMs === FULL_LOOK_MS;
    return {
      items: claimed.map((row) => toClaimedDelivery(endpointId, row)),
      nextDueInMs: this.isFullForLong(endpointId, isFull) ? null : waitMs,
      more: claimed.length === limit || (next?.room ?? 0) === 0,
    };
  }

  /** Then the sweep, which reads for all of them at once, finds out when there is room again (D42). */
  private isFullForLong(endpointId: string, isFull: boolean): boolean {
    const since = this.fullSince.get(endpointId);
    if (!isFull) this.fullSince.delete(endpointId);
    else if (since === undefined) this.fullSince.set(endpointId, performance.now());
    return isFull && since !== undefined && performance.now() - since > LOOKING_FOR_MS;
  }

  /** As its first claim in this process has said, or `learnOwners`. */
  ownerOf(endpointId: string): GroupOwner | null {
    return this.owners.get(endpointId) ?? null;
  }

  async learnOwners(endpointIds: readonly string[]): Promise<void> {
    const unknown = endpointIds.filter((id) => !this.owners.has(id));
    if (unknown.length === 0) return;
    const { rows } = await sql<OwnerRow>(
      this.manager,
      'SELECT id AS endpoint_id, partner_id, mode FROM webhook_endpoints WHERE id = ANY ($1::text[])',
      [unknown],
    );
    for (const row of rows) this.owners.set(row.endpoint_id, toOwner(row));
  }

  /**
   * Extends the leases that are still this process's, whichever fence they have by now. A row that another transaction
   * has locked is skipped: it must cost no other its lease, and its own outlives two beats.
   */
  async renew(leases: readonly LeaseKey[]): Promise<void> {
    await sql(
      this.manager,
      `WITH mine AS (
         SELECT id FROM webhook_deliveries WHERE id = ANY ($1::text[]) AND lease_owner = $2 AND ${IS_OPEN}
         ORDER BY id FOR UPDATE SKIP LOCKED
       )
       UPDATE webhook_deliveries SET lease_until = ${NOW} + $3::int * interval '1 millisecond'
       WHERE id = ANY (ARRAY(SELECT id FROM mine)) AND ${IS_OPEN}`,
      [leases.map((lease) => lease.id), this.owner, this.leaseMs],
    );
  }

  /** Gives a lease back without an attempt; the delivery is due again after `delayMs`. */
  async release(lease: LeaseKey, delayMs: number): Promise<void> {
    await sql(
      this.manager,
      `UPDATE webhook_deliveries
       SET lease_owner = NULL, claimed_at = NULL, lease_until = NULL,
           next_attempt_at = CASE WHEN status = 'pending' AND $4::int > 0
             THEN ${NOW} + $4::int * interval '1 millisecond' ELSE next_attempt_at END
       WHERE id = $1 AND fence = $2 AND lease_owner = $3 AND ${IS_OPEN}`,
      [lease.id, lease.fence, this.owner, delayMs],
    );
  }

  /**
   * The stored bytes of a claimed delivery whose event the claim did not see. Its day is detached for a moment, and
   * attached again when a resend came to need it; null when the day was really dropped (D44).
   */
  async findBody(lease: LeaseKey): Promise<string | null> {
    const { rows } = await sql<{ event_id: string; mode: Mode }>(
      this.manager,
      `SELECT event_id, mode FROM webhook_deliveries WHERE id = $1 AND ${IS_OPEN} AND event_id IS NOT NULL`,
      [lease.id],
    );
    return rows[0] ? readBodyInItsDay(this.manager, rows[0].mode, rows[0].event_id) : null;
  }

  /** Ends a delivery that has nothing to send any more: its event was dropped, being past its retention (D44). */
  async discard(lease: LeaseKey): Promise<void> {
    await sql(
      this.manager,
      `WITH given_up AS (
         DELETE FROM webhook_deliveries WHERE id = $1 AND fence = $2 AND lease_owner = $3 AND ${IS_OPEN}
         ${STORE_GIVEN_UP}`,
      [lease.id, lease.fence, this.owner],
    );
  }

  /**
   * Endpoints after `after`, in id order, that have something to claim and room in their window. Jumps from endpoint to
   * endpoint through the index, so that a disabled endpoint's backlog of a million costs one step; of each it begins to
   * read behind what was given up.
   */
  async listGroupsDue(after: string, limit: number): Promise<readonly string[]> {
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
       -- no EXISTS: as a semi-join it would read from the beginning of the index, given up or not
       CROSS JOIN LATERAL (
         SELECT FROM webhook_deliveries d
         WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.next_attempt_at <= ${NOW}
           AND ${NOT_LEASED} AND ${IS_KEPT}
         LIMIT 1
       ) AS due
       WHERE w.enabled AND w.deleted_at IS NULL AND (w.blocked_until IS NULL OR w.blocked_until <= ${NOW})
         AND (SELECT count(*) FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.${IS_OPEN} AND d.lease_until > ${NOW})
             < least(w.ramp_window, $3::int)
       ORDER BY w.id LIMIT $2`,
      [after, limit, this.mostInFlight],
    );
    return rows.map((row) => row.id);
  }
}

function toOwner({ partner_id: partnerId, mode }: OwnerRow): GroupOwner {
  return { id: `${partnerId}:${mode}`, mode };
}

function byDueTime(a: ClaimRow, b: ClaimRow): number {
  if (a.due_text !== b.due_text) return a.due_text < b.due_text ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

function toClaimedDelivery(endpointId: string, row: ClaimRow): ClaimedDelivery {
  return {
    id: row.id,
    endpointId,
    mode: row.mode,
    eventType: row.event_type,
    fence: row.fence,
    standard: row.standard,
    countedAttempts: row.counted_attempts,
    url: row.url,
    sealedSecrets: row.previous_secret === null ? [row.secret] : [row.secret, row.previous_secret],
    body: row.body,
    lapse: row.lapsed_ago_ms === null ? null : { agoMs: row.lapsed_ago_ms, ranMs: row.lapsed_ran_ms ?? 0 },
  };
}
