import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { NOW, prepared, sql } from '../../infra/database/index.js';
import { WorkSignals } from '../../infra/jobs/index.js';
import { FULL_WINDOW, type SendWindow, SLOW_START } from '../delivery-rules.js';

/** Destination of an endpoint that is being handed over, and the start of the handover in monotonic milliseconds. */
export interface Leaving {
  /** A process; null: any process with room. */
  readonly to: string | null;
  readonly sinceMs: number;
}

/** An endpoint that this process owns and alone sends to (D56). All state beyond the endpoint's row is kept here. */
export interface OwnedEndpoint {
  readonly id: string;
  readonly partnerId: string;
  readonly mode: Mode;
  /** Increases with every owner. A bigint, kept as text. */
  readonly fence: string;
  window: SendWindow;
  /** The last slow start seen in its row; `since` as PostgreSQL writes it. */
  slowStart: { readonly since: string; isOver: boolean } | null;
  consecutiveBlocks: number;
  lastUsedAtMs: number;
  /** While set, no attempt may begin, and the lease is released once nothing is in flight. Null: the endpoint stays. */
  leaving: Leaving | null;
  /** Start of its wait for a slot, in monotonic milliseconds; null: it does not wait. */
  waitsSinceMs: number | null;
}

export interface Acquired {
  readonly taken: readonly OwnedEndpoint[];
  /** Owners of the other endpoints, by endpoint. */
  readonly owners: ReadonlyMap<string, string>;
}

/** Share of a lease during which an attempt may begin; the rest allows for clocks that run at different speeds. */
const SURE_SHARE = 2 / 3;

interface AcquiredRow {
  id: string;
  partner_id: string;
  mode: Mode;
  fence: string | null;
  owner: string | null;
  consecutive_blocks: number;
  slow_start_since: string | null;
}

/**
 * $1 endpoints, $2 this process, $3 milliseconds. Takes this process's own lease again, because the earlier response
 * may have been lost.
 */
const ACQUIRE = prepared(`
  WITH wanted AS (
    SELECT id, partner_id, mode, consecutive_blocks, slow_start_since FROM webhook_endpoints WHERE id = ANY ($1::text[])
  ), taken AS (
    INSERT INTO webhook_endpoint_leases AS l (endpoint_id, owner, fence, until)
    SELECT id, $2, 1, ${NOW} + $3::int * interval '1 millisecond' FROM wanted ORDER BY id
    ON CONFLICT (endpoint_id) DO UPDATE SET owner = excluded.owner, fence = l.fence + 1, until = excluded.until
    WHERE l.owner IS NULL OR l.until <= ${NOW} OR l.owner = excluded.owner
    RETURNING endpoint_id, fence
  )
  SELECT w.id, w.partner_id, w.mode, t.fence, l.owner, w.consecutive_blocks, w.slow_start_since::text
  FROM wanted w LEFT JOIN taken t ON t.endpoint_id = w.id LEFT JOIN webhook_endpoint_leases l ON l.endpoint_id = w.id`);

/**
 * $1 endpoints, $2 their fences, $3 this process. Skips locked leases: another process is taking them, and waiting for
 * it could deadlock.
 */
const MINE = `mine AS (
    SELECT l.endpoint_id FROM webhook_endpoint_leases l
    JOIN unnest($1::text[], $2::bigint[]) AS m (endpoint_id, fence) ON m.endpoint_id = l.endpoint_id AND m.fence = l.fence
    WHERE l.owner = $3 ORDER BY l.endpoint_id FOR NO KEY UPDATE OF l SKIP LOCKED
  )`;

/** $4 milliseconds. */
const RENEW = prepared(`
  WITH ${MINE}
  UPDATE webhook_endpoint_leases l SET until = ${NOW} + $4::int * interval '1 millisecond'
  FROM mine WHERE l.endpoint_id = mine.endpoint_id
  RETURNING l.endpoint_id`);

const RELEASE = prepared(`
  WITH ${MINE}
  UPDATE webhook_endpoint_leases l SET owner = NULL, until = NULL FROM mine WHERE l.endpoint_id = mine.endpoint_id`);

/**
 * The endpoints that this process owns (D56). A lease lasts `LEASE_MS` and is renewed three times within it. A process
 * that dies delays its endpoints by at most that time. If PostgreSQL crashes and loses a renewal, the lease only ends
 * sooner.
 */
@Injectable()
export class EndpointLeases {
  /** Id of this process in leases and signals. */
  readonly owner: string;
  private readonly leaseMs: number;
  private readonly owned = new Map<string, OwnedEndpoint>();
  /** By partner and mode. */
  private readonly byPartner = new Map<string, Set<OwnedEndpoint>>();
  private readonly renewedAtMs = new Map<string, number>();
  private renewing: Promise<void> | null = null;
  /** Attempts in flight by endpoint, including those begun under a lost lease. */
  private readonly underWay = new Map<string, number>();

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'leaseMs'>,
    signals: WorkSignals,
  ) {
    this.owner = signals.id;
    this.leaseMs = config.leaseMs;
  }

  get(endpointId: string): OwnedEndpoint | undefined {
    return this.owned.get(endpointId);
  }

  get all(): readonly OwnedEndpoint[] {
    return [...this.owned.values()];
  }

  of(partnerId: string, mode: Mode): Iterable<OwnedEndpoint> {
    return this.byPartner.get(`${partnerId}:${mode}`) ?? [];
  }

  /** Number of the endpoint's attempts in flight in this process. */
  inFlightOf(endpointId: string): number {
    return this.underWay.get(endpointId) ?? 0;
  }

  /** Adds begun attempts; a negative number subtracts ended ones. */
  count(endpointId: string, attempts: number): void {
    const sum = this.inFlightOf(endpointId) + attempts;
    if (sum === 0) this.underWay.delete(endpointId);
    else this.underWay.set(endpointId, sum);
  }

  /**
   * Whether an attempt may begin under this lease: no other process can own the endpoint before the attempt is sent.
   * Renews an uncertain lease. @throws a database error
   */
  async isHeld(endpointId: string, fence: string): Promise<boolean> {
    if (!this.isSure(endpointId, fence)) await this.renew();
    return this.isSure(endpointId, fence);
  }

  /** Like `isHeld`, without querying the database. */
  isSure(endpointId: string, fence: string): boolean {
    const renewedAtMs = this.renewedAtMs.get(endpointId);
    if (renewedAtMs === undefined || this.owned.get(endpointId)?.fence !== fence) return false;
    return performance.now() - renewedAtMs < this.leaseMs * SURE_SHARE;
  }

  /** Acquires the leases that no process holds. */
  async acquire(endpointIds: readonly string[]): Promise<Acquired> {
    const askedAtMs = performance.now();
    const { rows } = await sql<AcquiredRow>(this.manager, ACQUIRE, [endpointIds, this.owner, this.leaseMs]);
    const owners = new Map<string, string>();
    const taken: OwnedEndpoint[] = [];
    for (const row of rows) {
      if (row.fence !== null) taken.push(this.own(row, row.fence, askedAtMs));
      else if (row.owner !== null) owners.set(row.id, row.owner);
    }
    return { taken, owners };
  }

  /** Renews every lease in one statement, and forgets those taken by another process. */
  renew(): Promise<void> {
    return (this.renewing ??= this.renewAll().finally(() => (this.renewing = null)));
  }

  private async renewAll(): Promise<void> {
    const all = this.all;
    if (all.length === 0) return;
    const askedAtMs = performance.now();
    const { rows } = await sql<{ endpoint_id: string }>(this.manager, RENEW, [
      ...columnsOf(all),
      this.owner,
      this.leaseMs,
    ]);
    const renewed = new Set(rows.map((row) => row.endpoint_id));
    for (const endpoint of all) {
      if (!renewed.has(endpoint.id)) this.forget(endpoint);
      else if (this.owned.get(endpoint.id) === endpoint) this.renewedAtMs.set(endpoint.id, askedAtMs);
    }
  }

  /** Releases leases, so that another process can acquire them at once. None may have attempts in flight. */
  async release(endpoints: readonly OwnedEndpoint[]): Promise<void> {
    if (endpoints.length === 0) return;
    for (const endpoint of endpoints) this.forget(endpoint);
    await sql(this.manager, RELEASE, [...columnsOf(endpoints), this.owner]);
  }

  /** Forgets an endpoint whose lease another process holds. */
  forget(endpoint: OwnedEndpoint): void {
    if (this.owned.get(endpoint.id) !== endpoint) return;
    this.owned.delete(endpoint.id);
    this.renewedAtMs.delete(endpoint.id);
    const ofPartner = this.byPartner.get(`${endpoint.partnerId}:${endpoint.mode}`);
    ofPartner?.delete(endpoint);
    if (ofPartner?.size === 0) this.byPartner.delete(`${endpoint.partnerId}:${endpoint.mode}`);
  }

  private own(row: AcquiredRow, fence: string, askedAtMs: number): OwnedEndpoint {
    const before = this.owned.get(row.id);
    if (before) this.forget(before);
    const endpoint: OwnedEndpoint = {
      id: row.id,
      partnerId: row.partner_id,
      mode: row.mode,
      fence,
      window: row.slow_start_since === null ? FULL_WINDOW : SLOW_START,
      slowStart: row.slow_start_since === null ? null : { since: row.slow_start_since, isOver: false },
      consecutiveBlocks: row.consecutive_blocks,
      lastUsedAtMs: askedAtMs,
      leaving: null,
      waitsSinceMs: null,
    };
    this.owned.set(row.id, endpoint);
    this.renewedAtMs.set(row.id, askedAtMs);
    const key = `${row.partner_id}:${row.mode}`;
    const ofPartner = this.byPartner.get(key) ?? new Set();
    this.byPartner.set(key, ofPartner.add(endpoint));
    return endpoint;
  }
}

function columnsOf(endpoints: readonly OwnedEndpoint[]): [readonly string[], readonly string[]] {
  return [endpoints.map(({ id }) => id), endpoints.map(({ fence }) => fence)];
}
