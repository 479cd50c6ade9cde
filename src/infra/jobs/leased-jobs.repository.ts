import type { EntityManager } from 'typeorm';
import type { Mode } from '../../common/mode.js';
import { prepared, type PreparedStatement, sql, type SqlParameter, type Tx } from '../database/index.js';
import { parseTraceparent, type TraceContext, type Tracer } from '../tracing/index.js';
import type { Claim, JobSource } from './job-source.js';
import { partnerGroup, scopeOfGroup } from './partner-group.js';
import type { GroupOwner } from './slot-shares.js';
import type { WorkerNotifier } from './worker-notifier.js';

export interface LeasedJobsOptions<Lease> {
  /** A constant of the code, never input: it stands in the SQL as it is. */
  readonly table: string;
  /** An UPDATE whose `$1` is the partner, `$2` the mode and `$3` the limit; a constant, too. */
  readonly claim: string;
  readonly leaseMs: number;
  readonly notifier: WorkerNotifier;
  readonly tracer: Tracer;
  idOf(lease: Lease): string;
}

/** SQL: false while a restored database is being repaired, as what it does not know may be bought already (D54). */
export const NO_OPEN_RESTORE = 'NOT EXISTS (SELECT FROM restore_epochs WHERE completed_at IS NULL)';
const LOOK_AGAIN_MS = 5_000;

/** What every claim answers of a row, besides its own. */
interface ClaimedRow {
  readonly id: string;
  readonly traceparent: string | null;
}

interface ClaimOfRows<Row> extends Claim<Row> {
  /** The span of the claim; null of one that took less than two. */
  readonly claimedIn: TraceContext | null;
}

export interface ProviderReferences {
  readonly provider: string;
  readonly references: readonly string[];
  /** Not sooner than this after the last change of the row. */
  readonly cooldownMs: number;
}

/** A placement that is about to be sent, if it may. */
export interface PlacementNote<Lease> {
  readonly lease: Lease;
  /** The provider's. */
  readonly readLagMs: number;
}

/** The answer to a worker that asks to place something at a provider. */
export interface PlacementSlot {
  /** Milliseconds that are still to wait; 0 when the placement is recorded and may be sent now. */
  readonly waitMs: number;
  /** A time of `performance.now()` before the record was written: the call is sent within the timeout from then, or never. */
  readonly sendWindowStart: number;
}

/**
 * SQL that is the same for every table of leased jobs whose groups are partners and modes (D41): `partner_id`, `mode`,
 * `next_attempt_at`, `lease_until`, `fence`, and `status` and `upstream_placed_at` of what a provider is asked to do. What a claim does
 * besides is each table's own. Due times and leases are the database's (D40).
 */
export abstract class LeasedJobsRepository<
  Lease extends { readonly fence: number },
  Claimed extends Lease = Lease,
> implements JobSource<Claimed> {
  protected readonly leaseMs: number;
  private readonly claimStatement: PreparedStatement;
  private readonly placeStatement: PreparedStatement;

  protected constructor(
    protected readonly manager: EntityManager,
    private readonly jobs: LeasedJobsOptions<Lease>,
  ) {
    this.leaseMs = jobs.leaseMs;
    this.claimStatement = claimStatement(jobs.table, jobs.claim);
    this.placeStatement = placeStatement(jobs.table);
  }

  abstract claim(group: string, limit: number): Promise<Claim<Claimed>>;

  /** Claims as `LeasedJobsOptions.claim` says, for `more` its parameters from `$4` on. */
  protected async claimRows<Row extends ClaimedRow>(
    group: string,
    limit: number,
    more: readonly SqlParameter[],
  ): Promise<ClaimOfRows<Row>> {
    const scope = scopeOfGroup(group);
    if (!scope) return { items: [], more: false, nextDueInMs: null, claimedIn: null };
    const startedAt = Date.now();
    const { rows } = await sql<{ next_due_in_ms: number | null } & (Row | { readonly id: null })>(
      this.manager,
      this.claimStatement,
      [scope.partnerId, scope.mode, limit, ...more],
    );
    const items = rows.filter((row): row is typeof row & Row => row.id !== null);
    const isMore = items.length === limit;
    // The end of a job claims the rest.
    const nextDueInMs = isMore ? null : (rows[0]?.next_due_in_ms ?? null);
    return { items, more: isMore, nextDueInMs, claimedIn: this.traceClaim(items, startedAt) };
  }

  /** A claim that takes several is part of no trace of theirs: a span of its own, linked with each (D53). */
  private traceClaim(items: readonly ClaimedRow[], startedAt: number): TraceContext | null {
    const { tracer, table } = this.jobs;
    if (!tracer.isOn || items.length < 2) return null;
    const span = tracer.start({
      name: `claim ${table}`,
      kind: 'consumer',
      parent: null,
      links: items.map(({ traceparent }) => parseTraceparent(traceparent)),
      attributes: { 'esim.jobs': items.length },
      startedAt,
    });
    span.end();
    return span.context;
  }

  ownerOf(group: string): GroupOwner | null {
    const scope = scopeOfGroup(group);
    return scope && { id: group, mode: scope.mode };
  }

  /** Groups, in the order of partners and modes, that have something due which nobody holds: their notification was lost (D1). */
  async listGroupsDue(after: string, limit: number): Promise<readonly string[]> {
    const { partnerId, mode } = scopeOfGroup(after) ?? { partnerId: '', mode: '' };
    const { rows } = await sql<{ partner_id: string; mode: Mode }>(
      this.manager,
      `SELECT DISTINCT partner_id, mode FROM ${this.jobs.table}
       WHERE next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
         AND (partner_id, mode) > ($1, $2)
       ORDER BY partner_id, mode LIMIT $3`,
      [partnerId, mode, limit],
    );
    return rows.map((row) => partnerGroup({ partnerId: row.partner_id, mode: row.mode }));
  }

  /**
   * Extends leases that are still ours. A lapsed one stays lapsed: another worker may have acted on it. A row that
   * another transaction has locked is skipped: to wait for it, holding the others, would cost them their ends.
   */
  async renew(leases: readonly Lease[]): Promise<void> {
    if (leases.length === 0) return;
    await sql(
      this.manager,
      `WITH mine AS (
         SELECT t.id FROM ${this.jobs.table} t
         JOIN unnest($1::text[], $2::bigint[]) AS l (id, fence) ON l.id = t.id AND l.fence = t.fence
         WHERE t.lease_until > now()
         ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED
       )
       UPDATE ${this.jobs.table} t SET lease_until = now() + $3 * interval '1 millisecond'
       FROM mine WHERE t.id = mine.id`,
      [leases.map((lease) => this.jobs.idOf(lease)), leases.map((lease) => lease.fence), this.leaseMs],
    );
  }

  /** Gives the row back, to be looked at after `delayMs`; `errorClass` says what went wrong, if anything did. */
  async postpone(lease: Lease, delayMs: number, errorClass: string | null = null): Promise<void> {
    await sql(
      this.manager,
      `UPDATE ${this.jobs.table} SET next_attempt_at = now() + $3 * interval '1 millisecond', lease_until = NULL,
         last_error = $4, updated_at = now()
       WHERE id = $1 AND fence = $2 AND next_attempt_at IS NOT NULL`,
      [this.jobs.idOf(lease), lease.fence, delayMs, errorClass],
    );
  }

  /** As `markAllPlaced`, for one. */
  async markPlaced(lease: Lease, readLagMs: number): Promise<PlacementSlot | null> {
    const [slot] = await this.markAllPlaced([{ lease, readLagMs }]);
    return slot!;
  }

  /**
   * Records for each that a placement is about to be sent, provided that the last one is longer ago than the provider's
   * read lag (D19). Null when the lease is void, or has lapsed: then nothing may be sent.
   * @param lockWaitMs how long it waits for the lock of a row, milliseconds; null: as long as the session does
   */
  async markAllPlaced(
    placements: readonly PlacementNote<Lease>[],
    lockWaitMs: number | null = null,
  ): Promise<readonly (PlacementSlot | null)[]> {
    const sendWindowStart = performance.now();
    const ids = placements.map(({ lease }) => this.jobs.idOf(lease));
    const { rows } = await sql<{ id: string; wait_ms: number }>(this.manager, this.placeStatement, [
      ids,
      placements.map(({ lease }) => lease.fence),
      placements.map(({ readLagMs }) => readLagMs),
      lockWaitMs === null ? null : String(lockWaitMs),
    ]);
    const waits = new Map(rows.map((row) => [row.id, row.wait_ms]));
    return ids.map((id) => {
      const waitMs = waits.get(id);
      return waitMs === undefined ? null : { waitMs, sendWindowStart };
    });
  }

  /** The placement may have taken effect at any time until now: its read lag begins only here. */
  async touchPlacement(lease: Lease): Promise<void> {
    await sql(
      this.manager,
      `UPDATE ${this.jobs.table} SET upstream_placed_at = clock_timestamp()
       WHERE id = $1 AND fence = $2 AND status = 'processing'`,
      [this.jobs.idOf(lease), lease.fence],
    );
  }

  /** Takes back the record of a placement that certainly had no effect: the last one is again that of `earlier`. */
  async clearPlacement(lease: Lease, earlier: Date | null): Promise<void> {
    await sql(
      this.manager,
      `UPDATE ${this.jobs.table} SET upstream_placed_at = $3
       WHERE id = $1 AND fence = $2 AND status = 'processing'`,
      [this.jobs.idOf(lease), lease.fence, earlier],
    );
  }

  /** Makes one row due now that has not ended; false when it has. */
  async makeOneDue(tx: Tx, id: string): Promise<boolean> {
    const { affected } = await sql(
      tx.manager,
      `UPDATE ${this.jobs.table} SET next_attempt_at = now()
       WHERE id = $1 AND status IN ('pending', 'processing', 'canceling')`,
      [id],
    );
    return affected === 1;
  }

  /**
   * Makes open rows due now, because their provider says that something happened: the worker asks again and believes
   * nothing. Rows that are ended, unknown or another provider's stay as they are.
   */
  async makeDue(tx: Tx, { provider, references, cooldownMs }: ProviderReferences): Promise<void> {
    const { table, notifier } = this.jobs;
    const { rows } = await sql<{ partner_id: string; mode: Mode; next_attempt_at: Date }>(
      tx.manager,
      `UPDATE ${table} t SET next_attempt_at = due.at
       FROM (SELECT id, greatest(now(), updated_at + $3 * interval '1 millisecond') AS at FROM ${table}
             WHERE provider = $1 AND provider_reference = ANY($2::text[])
             ORDER BY id FOR UPDATE) AS due
       WHERE t.id = due.id AND t.next_attempt_at > due.at
       RETURNING t.partner_id, t.mode, t.next_attempt_at`,
      [provider, references, cooldownMs],
    );
    const groupOf = (row: (typeof rows)[number]): string =>
      partnerGroup({ partnerId: row.partner_id, mode: row.mode });
    tx.afterCommit(() => rows.forEach((row) => notifier.notifyAt(groupOf(row), row.next_attempt_at)));
  }
}

/**
 * The claim, and in the same statement when the group's next row is due. Rows that are leased do not count: the worker that
 * holds the lease claims again at its end, and the sweep finds the lease of a dead worker. While nothing may be claimed,
 * what is due is not, or the group would be asked for without a pause.
 */
function claimStatement(table: string, claim: string): PreparedStatement {
  return prepared(
    `WITH claimed AS (${claim}), next AS (
       SELECT greatest((extract(epoch FROM min(next_attempt_at) - now()) * 1000)::float8,
                       CASE WHEN min(next_attempt_at) IS NOT NULL AND NOT ${NO_OPEN_RESTORE} THEN ${LOOK_AGAIN_MS} END
         ) AS next_due_in_ms
       FROM ${table}
       WHERE partner_id = $1 AND mode = $2 AND next_attempt_at IS NOT NULL AND (lease_until IS NULL OR lease_until <= now())
         AND id NOT IN (SELECT id FROM claimed)
     )
     SELECT claimed.*, next.next_due_in_ms FROM next LEFT JOIN claimed ON true`,
  );
}

/** `$4` is the wait for locks, in ms, set for this statement alone: rows are locked when all that it joins is there. */
function placeStatement(table: string): PreparedStatement {
  return prepared(
    `WITH patience AS MATERIALIZED (
       SELECT set_config('lock_timeout', coalesce($4::text, current_setting('lock_timeout')), true) AS lock_timeout
     ), own AS (
       SELECT t.id, coalesce(t.upstream_placed_at + w.read_lag_ms * interval '1 millisecond', now()) AS free_at
       FROM unnest($1::text[], $2::bigint[], $3::float8[]) AS w (id, fence, read_lag_ms)
       JOIN ${table} t ON t.id = w.id AND t.fence = w.fence AND t.status = 'processing' AND t.lease_until > now()
       CROSS JOIN patience
       ORDER BY t.id FOR UPDATE OF t
     ), placed AS (
       UPDATE ${table} t SET upstream_placed_at = now() FROM own WHERE t.id = own.id AND own.free_at <= now()
     )
     SELECT id, greatest(0, ceil(extract(epoch FROM free_at - now()) * 1000))::int AS wait_ms FROM own`,
  );
}
