import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import {
  columnsOf,
  COMMIT_WITHOUT_DISK,
  commitSandboxWithoutDisk,
  prepared,
  type PreparedStatement,
  rowToEntity,
  selectList,
  sql,
  type Tx,
} from '../infra/database/index.js';
import {
  type Claim,
  type GroupOwner,
  type JobSource,
  partnerGroup,
  scopeOfGroup,
  type WorkerNotifier,
} from '../infra/jobs/index.js';
import { parseTraceparent, type TraceContext, type Tracer } from '../infra/tracing/index.js';
import type { ProviderFailure } from '../providers/index.js';
import type { Purchase, PurchaseKind } from './purchase.js';

interface PurchaseJobsOptions {
  /** Whether the claim records the first placement, which then needs no separate statement. */
  readonly claimRecordsPlacement: boolean;
  /**
   * SQL assignments that end row `p`, of which `h.fulfilled` units were delivered. A constant in the code, never
   * input.
   */
  readonly endAssignments: string;
  readonly leaseMs: number;
  readonly notifier: WorkerNotifier;
  readonly tracer: Tracer;
}

/** SQL: false while a restored database is being repaired, because unknown purchases may already exist (D54). */
const NO_OPEN_RESTORE = 'NOT EXISTS (SELECT FROM restore_epochs WHERE completed_at IS NULL)';
const LOOK_AGAIN_MS = 5_000;

/** The right to work on a purchase: void when the lease lapsed and another worker took it with a higher fence. */
export interface PurchaseLease {
  readonly id: string;
  readonly fence: number;
}

/** A purchase that a worker has just claimed. */
export interface ClaimedPurchase<P extends Purchase> extends PurchaseLease {
  /** State after the claim. */
  readonly purchase: P;
  /** No placement was ever sent. */
  readonly neverPlaced: boolean;
  /** The first placement, if the claim itself has recorded that it may be sent now. */
  readonly firstPlacement: PlacementSlot | null;
  /** A time of `performance.now()` before the claim was written. */
  readonly sendWindowStart: number;
  /** Span of a claim of several purchases; null for a single one, or when nothing is traced. */
  readonly claimedIn: TraceContext | null;
}

/** A purchase that was inserted as claimed. @param sendWindowStart a time of `performance.now()` before the insert */
export function bornClaimed<P extends Purchase>(purchase: P, sendWindowStart: number): ClaimedPurchase<P> {
  const { id, fence } = purchase;
  const firstPlacement = { waitMs: 0, sendWindowStart };
  return { id, fence, purchase, neverPlaced: true, firstPlacement, sendWindowStart, claimedIn: null };
}

/** A purchase's state at the time of a provider query, while no worker held it. */
export interface PurchaseVersion {
  readonly status: 'processing' | 'canceling';
  readonly fence: number;
  /** How long after a call the provider may not show its effect yet. */
  readonly readLagMs: number;
  /** Unix seconds as text, because a Date would drop the microseconds. Null when nothing was ever sent. */
  readonly placedAt: string | null;
  /** How much longer the provider may not show the effect of the last call; 0 once the lag has passed. */
  readonly lagLeftMs: number;
}

/** A lease that support has acquired. */
export interface AcquiredLease extends PurchaseLease {
  /** Same as in `PurchaseVersion`. */
  readonly lagLeftMs: number;
}

/** Final result of a purchase. */
interface PurchaseEnd {
  readonly lease: PurchaseLease;
  /** Number of units delivered; 0 if the purchase failed. */
  readonly fulfilled: number;
  /** Set when fewer units were delivered than ordered. */
  readonly failure: ProviderFailure | null;
}

/** A purchase after its result was written. */
export interface ChangedPurchase {
  readonly version: number;
  readonly at: Date;
}

export interface ProviderReferences {
  readonly provider: string;
  readonly references: readonly string[];
  /** Minimum time since the last change of the row. */
  readonly cooldownMs: number;
}

/** A placement to send, if permitted. */
export interface PlacementNote {
  readonly lease: PurchaseLease;
  /** The provider's read lag. */
  readonly readLagMs: number;
}

/** Whether and when a worker may send a placement. */
export interface PlacementSlot {
  /** Milliseconds left to wait; 0 when the placement is recorded and may be sent now. */
  readonly waitMs: number;
  /**
   * A time of `performance.now()` before the record was written: the call is sent within the timeout after it, or
   * never.
   */
  readonly sendWindowStart: number;
}

interface ClaimedRow extends Record<string, unknown> {
  readonly id: string;
  readonly never_placed: boolean;
}

/**
 * SQL for the latest time at which a call may have taken effect at the provider; null when none was ever sent. A
 * cancellation counts from the row's last update, because the worker that sends it updates the row.
 */
const LAST_CALL = `(CASE status WHEN 'canceling' THEN updated_at ELSE upstream_placed_at END)`;

/**
 * SQL for claims, leases, placements and results in `orders` or `topups`; a group is a partner and a mode (D41). Due
 * times and leases use the database's clock (D40). Every write is guarded by the lease's fence.
 */
export abstract class PurchaseJobsRepository<P extends Purchase> implements JobSource<ClaimedPurchase<P>> {
  private readonly claimStatement: PreparedStatement;
  private readonly placeStatement: PreparedStatement;
  private readonly endStatement: PreparedStatement;

  protected constructor(
    protected readonly manager: EntityManager,
    readonly kind: PurchaseKind<P>,
    private readonly options: PurchaseJobsOptions,
  ) {
    const { table } = kind;
    const [attempts] = columnsOf(manager, kind.entity, ['attempts']);
    const { claimRecordsPlacement, endAssignments } = options;
    const claim = claimOf(table, {
      attempts: attempts!.name,
      claimRecordsPlacement,
      columns: selectList(manager, kind.entity, 'p'),
    });
    this.claimStatement = claimStatement(table, claim);
    this.placeStatement = placeStatement(table);
    this.endStatement = endStatement(table, endAssignments);
  }

  /**
   * Leases and reads up to `limit` due rows of a partner and mode, longest due first; pending ones become processing. A
   * crash of PostgreSQL may lose a claim in Sandbox, whose provider accepts each reference once (D61). Two workers may
   * then hold the same fence, and the first result ends the purchase for both.
   */
  async claim(group: string, limit: number): Promise<Claim<ClaimedPurchase<P>>> {
    const scope = scopeOfGroup(group);
    if (!scope) return { items: [], more: false, nextDueInMs: null };
    const startedAt = Date.now();
    const sendWindowStart = performance.now();
    const { rows } = await sql<{ next_due_in_ms: number | null } & (ClaimedRow | { readonly id: null })>(
      this.manager,
      this.claimStatement,
      [scope.partnerId, scope.mode, limit, this.options.leaseMs],
    );
    const claimed = rows.filter((row): row is typeof row & ClaimedRow => row.id !== null);
    const purchases = claimed.map((row) => rowToEntity(this.manager, this.kind.entity, row));
    const claimedIn = this.traceClaim(purchases, startedAt);
    const items = purchases.map((purchase, index) => {
      const neverPlaced = claimed[index]!.never_placed;
      const firstPlacement =
        neverPlaced && this.options.claimRecordsPlacement ? { waitMs: 0, sendWindowStart } : null;
      const { id, fence } = purchase;
      return { id, fence, purchase, neverPlaced, firstPlacement, sendWindowStart, claimedIn };
    });
    const more = items.length === limit;
    // The rest is claimed when a job ends.
    return { items, more, nextDueInMs: more ? null : (rows[0]?.next_due_in_ms ?? null) };
  }

  /** A claim of several purchases belongs to none of their traces: it is a separate span, linked to each (D53). */
  private traceClaim(purchases: readonly Purchase[], startedAt: number): TraceContext | null {
    const { tracer } = this.options;
    if (!tracer.isOn || purchases.length < 2) return null;
    const span = tracer.start({
      name: `claim ${this.kind.table}`,
      kind: 'consumer',
      parent: null,
      links: purchases.map(({ traceparent }) => parseTraceparent(traceparent)),
      attributes: { 'esim.jobs': purchases.length },
      startedAt,
    });
    span.end();
    return span.context;
  }

  ownerOf(group: string): GroupOwner | null {
    const scope = scopeOfGroup(group);
    return scope && { id: group, mode: scope.mode };
  }

  /** Lists groups with due rows that no worker holds, by partner and mode: their notification was lost (D1). */
  async listGroupsDue(after: string, limit: number): Promise<readonly string[]> {
    const { partnerId, mode } = scopeOfGroup(after) ?? { partnerId: '', mode: '' };
    const { rows } = await sql<{ partner_id: string; mode: Mode }>(
      this.manager,
      `SELECT DISTINCT partner_id, mode FROM ${this.kind.table}
       WHERE next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
         AND (partner_id, mode) > ($1, $2)
       ORDER BY partner_id, mode LIMIT $3`,
      [partnerId, mode, limit],
    );
    return rows.map((row) => partnerGroup({ partnerId: row.partner_id, mode: row.mode }));
  }

  /**
   * Extends leases that are still ours. A lapsed one stays lapsed, because another worker may have acted on it. A
   * locked row is skipped: waiting for it while holding the others could lose their results. A crash of PostgreSQL may
   * lose the extension, and the lease then lapses (D61).
   */
  async renew(leases: readonly PurchaseLease[]): Promise<void> {
    if (leases.length === 0) return;
    await sql(
      this.manager,
      `WITH mine AS (
         SELECT t.id FROM unnest($1::text[], $2::bigint[]) AS l (id, fence)
         CROSS JOIN LATERAL (${rowOf(this.kind.table, 'l.id')} FOR NO KEY UPDATE SKIP LOCKED) AS t
         WHERE t.fence = l.fence AND t.lease_until > now()
       )
       UPDATE ${this.kind.table} t SET lease_until = now() + $3 * interval '1 millisecond'
       FROM mine, ${COMMIT_WITHOUT_DISK} WHERE t.id = mine.id`,
      [leases.map(({ id }) => id), leases.map(({ fence }) => fence), this.options.leaseMs],
    );
  }

  /** Releases the row until `delayMs` have passed; `errorClass` names the error, if there was one. */
  async postpone(lease: PurchaseLease, delayMs: number, errorClass: string | null = null): Promise<void> {
    await sql(
      this.manager,
      `UPDATE ${this.kind.table} SET next_attempt_at = now() + $3 * interval '1 millisecond', lease_until = NULL,
         last_error = $4, updated_at = now()
       WHERE id = $1 AND fence = $2 AND next_attempt_at IS NOT NULL`,
      [lease.id, lease.fence, delayMs, errorClass],
    );
  }

  /**
   * Records that placements are about to be sent, if the last one is older than the provider's read lag (D19). Null
   * when the lease is void or has lapsed: then nothing may be sent.
   * @param lockWaitMs maximum wait for a row's lock in milliseconds; null: the session's limit
   */
  async markPlaced(
    placements: readonly PlacementNote[],
    lockWaitMs: number | null = null,
  ): Promise<readonly (PlacementSlot | null)[]> {
    const sendWindowStart = performance.now();
    const ids = placements.map(({ lease }) => lease.id);
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

  /** The placement may have taken effect at any time until now, so its read lag begins here. */
  async touchPlacement(lease: PurchaseLease): Promise<void> {
    await sql(
      this.manager,
      `UPDATE ${this.kind.table} SET upstream_placed_at = clock_timestamp()
       WHERE id = $1 AND fence = $2 AND status = 'processing'`,
      [lease.id, lease.fence],
    );
  }

  /** Removes the record of a placement that certainly had no effect and restores the previous record. */
  async clearPlacement({ id, fence, neverPlaced, purchase }: ClaimedPurchase<P>): Promise<void> {
    await sql(
      this.manager,
      `UPDATE ${this.kind.table} SET upstream_placed_at = $3
       WHERE id = $1 AND fence = $2 AND status = 'processing'`,
      [id, fence, neverPlaced ? null : purchase.upstreamPlacedAt],
    );
  }

  /** Makes a row due now. Returns false if it has ended, or waits for the eSIM that it replaces to be canceled. */
  async makeOneDue(tx: Tx, id: string): Promise<boolean> {
    const { affected } = await sql(
      tx.manager,
      `UPDATE ${this.kind.table} SET next_attempt_at = now()
       WHERE id = $1 AND (status = 'pending' AND next_attempt_at IS NOT NULL OR status IN ('processing', 'canceling'))`,
      [id],
    );
    return affected === 1;
  }

  /**
   * Makes open rows due now after a provider's callback: the worker queries the provider and does not trust the
   * callback. Ended, unknown and other providers' rows do not change.
   */
  async makeDue(tx: Tx, { provider, references, cooldownMs }: ProviderReferences): Promise<void> {
    const { table } = this.kind;
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
    tx.afterCommit(() =>
      rows.forEach((row) => this.options.notifier.notifyAt(groupOf(row), row.next_attempt_at)),
    );
  }

  /**
   * The version of a row in `status` that no worker holds; null when one does, or the status differs. While the
   * provider may not show the last call yet, postpones the row to at least three read lags after that call. This gives
   * support time to decide: a worker's retry would restart the read lag forever.
   */
  async deferRetries(
    id: string,
    status: PurchaseVersion['status'],
    readLagMs: number,
  ): Promise<PurchaseVersion | null> {
    const { rows } = await sql<{ fence: string; placed_at: string | null; lag_left_ms: number }>(
      this.manager,
      `UPDATE ${this.kind.table} SET next_attempt_at = CASE WHEN ${LAST_CALL} + $3 * interval '1 millisecond' > now()
         THEN greatest(next_attempt_at, ${LAST_CALL} + 3 * $3 * interval '1 millisecond') ELSE next_attempt_at END
       WHERE id = $1 AND status = $2 AND (lease_until IS NULL OR lease_until <= now())
       RETURNING fence, extract(epoch FROM upstream_placed_at)::text AS placed_at,
         greatest(0, ceil(extract(epoch FROM
           ${LAST_CALL} + $3 * interval '1 millisecond' - now()) * 1000))::int AS lag_left_ms`,
      [id, status, readLagMs],
    );
    const row = rows[0];
    if (!row) return null;
    const { fence, placed_at: placedAt, lag_left_ms: lagLeftMs } = row;
    return { status, fence: Number(fence), readLagMs, placedAt, lagLeftMs };
  }

  /**
   * Acquires the lease of a purchase that no worker has claimed or placed since `version`, and voids earlier leases.
   * Null when one has, or the purchase has ended: the provider state that support saw is outdated.
   */
  async acquireLease(tx: Tx, id: string, version: PurchaseVersion): Promise<AcquiredLease | null> {
    const { rows } = await sql<{ fence: string; lag_left_ms: number }>(
      tx.manager,
      `UPDATE ${this.kind.table} SET fence = fence + 1 WHERE id = $1 AND status = $2 AND fence = $3
         AND (lease_until IS NULL OR lease_until <= now())
         AND extract(epoch FROM upstream_placed_at)::text IS NOT DISTINCT FROM $5
       RETURNING fence, greatest(0, ceil(extract(epoch FROM
         ${LAST_CALL} + $4 * interval '1 millisecond' - now()) * 1000))::int AS lag_left_ms`,
      [id, version.status, version.fence, version.readLagMs, version.placedAt],
    );
    const row = rows[0];
    return row ? { id, fence: Number(row.fence), lagLeftMs: row.lag_left_ms } : null;
  }

  /**
   * Ends many processing purchases, ordered by id. Returns each change with its version (D48). Null means that the
   * lease is void, even if `ends` also contains a later lease of the same purchase: then nothing may be written for it.
   */
  async end(tx: Tx, ends: readonly PurchaseEnd[]): Promise<readonly (ChangedPurchase | null)[]> {
    const { rows } = await sql<{ id: string; fence: string; version: number; at: Date }>(
      tx.manager,
      this.endStatement,
      [
        ends.map(({ lease }) => lease.id),
        ends.map(({ lease }) => lease.fence),
        ends.map(({ fulfilled }) => fulfilled),
        ends.map(({ failure }) => failure?.code ?? null),
        ends.map(({ failure }) => failure?.reason ?? null),
      ],
    );
    const changed = new Map(rows.map(({ id, fence, ...change }) => [`${id} ${fence}`, change]));
    return ends.map(({ lease }) => changed.get(`${lease.id} ${lease.fence}`) ?? null);
  }
}

interface ClaimParts {
  readonly columns: string;
  readonly attempts: string;
  readonly claimRecordsPlacement: boolean;
}

function claimOf(
  table: PurchaseKind['table'],
  { columns, attempts, claimRecordsPlacement }: ClaimParts,
): string {
  // Recorded before the call is sent, so that a later claim knows that one may have been sent. A cancellation places
  // nothing.
  const placement = claimRecordsPlacement
    ? `upstream_placed_at = CASE p.status WHEN 'canceling' THEN p.upstream_placed_at ELSE coalesce(p.upstream_placed_at, now()) END,`
    : '';
  return `UPDATE ${table} p
  SET status = CASE p.status WHEN 'pending' THEN 'processing' ELSE p.status END,
      lease_until = now() + $4 * interval '1 millisecond',
      fence = p.fence + 1,
      ${attempts} = p.${attempts} + 1,
      ${placement}
      updated_at = now()
  FROM (SELECT id, upstream_placed_at FROM ${table}
        WHERE partner_id = $1 AND mode = $2 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
          AND ${NO_OPEN_RESTORE}
        ORDER BY next_attempt_at, id LIMIT $3 FOR UPDATE SKIP LOCKED) AS due, ${commitSandboxWithoutDisk('$2')}
  WHERE p.id = due.id
  RETURNING ${columns}, due.upstream_placed_at IS NULL AS never_placed`;
}

/**
 * The claim, which also returns when the group's next row is due. Leased rows do not count: the worker that holds the
 * lease claims again when its job ends, and the sweep finds the lease of a dead worker. While claims are blocked, a due
 * row is reported as due in `LOOK_AGAIN_MS`, because the group would otherwise be claimed again without a pause.
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

/**
 * SQL for the row with an id. The limit makes it a look-up by the key: as a join, a plan that was made while few rows
 * were open reads every row that was ever open.
 */
function rowOf(table: string, id: string): string {
  return `SELECT r.* FROM ${table} r WHERE r.id = ${id} LIMIT 1`;
}

/**
 * `$4` is the lock timeout in ms, for this statement alone. Rows are locked only after the sort, and therefore after it
 * is set.
 */
function placeStatement(table: string): PreparedStatement {
  return prepared(
    `WITH patience AS MATERIALIZED (
       SELECT set_config('lock_timeout', coalesce($4::text, current_setting('lock_timeout')), true) AS lock_timeout
     ), own AS (
       SELECT t.id, coalesce(t.upstream_placed_at + w.read_lag_ms * interval '1 millisecond', now()) AS free_at
       FROM (
         SELECT w.* FROM patience, unnest($1::text[], $2::bigint[], $3::float8[]) AS w (id, fence, read_lag_ms)
         ORDER BY id COLLATE "C"
       ) AS w
       CROSS JOIN LATERAL (${rowOf(table, 'w.id')} FOR UPDATE) AS t
       WHERE t.fence = w.fence AND t.status = 'processing' AND t.lease_until > now()
     ), placed AS (
       UPDATE ${table} t SET upstream_placed_at = now() FROM own WHERE t.id = own.id AND own.free_at <= now()
     )
     SELECT id, greatest(0, ceil(extract(epoch FROM free_at - now()) * 1000))::int AS wait_ms FROM own`,
  );
}

/** Locks in id order first, because an UPDATE with a join locks in an order that PostgreSQL chooses. */
function endStatement(table: PurchaseKind['table'], assignments: string): PreparedStatement {
  return prepared(
    `WITH held AS (
       SELECT p.id, e.fulfilled, e.code, e.reason
       FROM (
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::text[]) AS e (id, fence, fulfilled, code, reason)
         ORDER BY id COLLATE "C"
       ) AS e
       CROSS JOIN LATERAL (${rowOf(table, 'e.id')} FOR NO KEY UPDATE) AS p
       WHERE p.fence = e.fence AND p.status = 'processing'
     )
     UPDATE ${table} p
     SET ${assignments}, failed_at = CASE WHEN h.fulfilled = 0 THEN now() END, failure_code = h.code,
         failure_reason = h.reason, next_attempt_at = NULL, lease_until = NULL, last_error = NULL, updated_at = now()
     FROM held h WHERE p.id = h.id
     RETURNING p.id, p.fence, p.version, clock_timestamp() AS at`,
  );
}
