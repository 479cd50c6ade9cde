import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { newId } from '../common/ids.js';
import { sql, toSafeInteger, type Tx } from '../infra/database/index.js';
import { CatalogSyncEntity, type SyncError, type SyncOutcome } from './catalog-sync.entity.js';
import type { SalesTerms } from './live-packages.js';

/** A worker's settings for the live catalog, and how long it has had them. */
interface SyncSettings {
  readonly digest: string;
  /** Milliseconds since this worker started. */
  readonly ageMs: number;
  /** Milliseconds without a renewal after which another worker takes over its synchronization. */
  readonly leaseMs: number;
}

/** A synchronization held by the worker that started it. */
export interface RunningSync {
  readonly id: string;
  /** Number of starts. Only the latest holder may write. */
  readonly attempt: number;
  readonly leaseMs: number;
}

/** An ended synchronization, and the part of the catalog's log that it announces. */
export interface UnannouncedSync {
  readonly id: string;
  readonly after: number;
  readonly upTo: number;
  /** The last partner that has the event; '' for none. */
  readonly announcedTo: string;
}

/** Equal in all processes with the same margin, rules and connected providers. */
export function digestOf({ marginBps, rules }: SalesTerms, liveProviders: readonly string[]): string {
  const settings = JSON.stringify([marginBps, rules, [...liveProviders].sort()]);
  return createHash('sha256').update(settings).digest('base64url').slice(0, 22);
}

/** A failed synchronization is retried after this, unless one is due sooner. */
const REPEAT_MS = 60_000;

/** Another worker has taken over this synchronization: this worker's state is out of date. */
export class SyncOvertaken extends Error {
  constructor() {
    super('another worker has taken over this synchronization');
    this.name = 'SyncOvertaken';
  }
}

/** SQL of `catalog_syncs`. */
@Injectable()
export class CatalogSyncsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Requests a synchronization; returns the waiting one if there is one. */
  async request(tx: Tx): Promise<CatalogSyncEntity> {
    // This no-op update locks the waiting one, so that no worker starts it before the read.
    const { rows } = await sql<{ id: string }>(
      tx.manager,
      `INSERT INTO catalog_syncs AS s (id, status) VALUES ($1, 'requested')
       ON CONFLICT (status) WHERE status = 'requested' DO UPDATE SET requested_at = s.requested_at
       RETURNING s.id`,
      [newId('syn')],
    );
    return tx.manager.findOneByOrFail(CatalogSyncEntity, { id: rows[0]!.id });
  }

  /**
   * Requests a synchronization, unless one is waiting, has started after `since` without failing, or has started within
   * `cooldownMs`.
   */
  async requestUnlessBegunSince(tx: Tx, since: Date, cooldownMs = 0): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO catalog_syncs (id, status)
       SELECT $1, 'requested'
       WHERE NOT EXISTS (SELECT 1 FROM catalog_syncs
                         WHERE (started_at > $2 AND status <> 'failed')
                            OR started_at > now() - $3 * interval '1 millisecond')
       ON CONFLICT (status) WHERE status = 'requested' DO NOTHING`,
      [newId('syn'), since, cooldownMs],
    );
  }

  /**
   * Starts a requested synchronization, or a scheduled one when the last is `intervalMs` old, has failed, or used older
   * settings than this worker's; null when there is nothing to do. At most one runs at a time.
   */
  async begin(tx: Tx, intervalMs: number, settings: SyncSettings): Promise<RunningSync | null> {
    await sql(tx.manager, `SELECT pg_advisory_xact_lock(hashtext('catalog_syncs'))`);
    // The condition is checked twice: a dead worker's synchronization that ends while this waits for its row must not
    // start again.
    const { rows } = await sql<{ id: string; attempt: number }>(
      tx.manager,
      `UPDATE catalog_syncs SET status = 'running', attempt = attempt + 1, started_at = now(),
         lease_until = now() + $3 * interval '1 millisecond',
         settings = $1, worker_since = now() - $2 * interval '1 millisecond'
       WHERE id = (SELECT id FROM catalog_syncs
                   WHERE status = 'requested' OR (status = 'running' AND lease_until <= now())
                   ORDER BY status = 'running' DESC, requested_at LIMIT 1)
         AND (status = 'requested' OR (status = 'running' AND lease_until <= now()))
         AND NOT EXISTS (SELECT 1 FROM catalog_syncs WHERE status = 'running' AND lease_until > now())
       RETURNING id, attempt`,
      [settings.digest, settings.ageMs, settings.leaseMs],
    );
    return rows[0]
      ? { ...rows[0], leaseMs: settings.leaseMs }
      : this.beginScheduled(tx, intervalMs, settings);
  }

  /**
   * Fences every transaction of a synchronization: locks it until the commit and renews its lease. A worker that paused
   * for longer than its lease can then write nothing.
   * @throws SyncOvertaken
   */
  async hold(tx: Tx, { id, attempt, leaseMs }: RunningSync): Promise<void> {
    const { affected } = await sql(
      tx.manager,
      `UPDATE catalog_syncs SET lease_until = now() + $3 * interval '1 millisecond'
       WHERE id = $1 AND attempt = $2 AND status = 'running'`,
      [id, attempt, leaseMs],
    );
    if (affected === 0) throw new SyncOvertaken();
  }

  /** Releases the lease at shutdown, so that the next worker need not wait for it. */
  async release(tx: Tx, { id, attempt }: RunningSync): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE catalog_syncs SET lease_until = now() WHERE id = $1 AND attempt = $2 AND status = 'running'`,
      [id, attempt],
    );
  }

  /**
   * Notes where the changes begin that a synchronization announces: where the last one's ended, so that changes between
   * two synchronizations belong to the later one. A repeated start keeps the place.
   */
  async noteChangesAfter(tx: Tx, id: string, log: { position: number; keptAfter: number }): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE catalog_syncs
       SET changes_after = greatest(coalesce((SELECT max(changes_up_to) FROM catalog_syncs), $2::bigint), $3::bigint)
       WHERE id = $1 AND changes_after IS NULL`,
      [id, log.position, log.keptAfter],
    );
  }

  /** The oldest ended synchronization that is not announced to all partners, locked unless another worker has it. */
  async lockUnannounced(tx: Tx): Promise<UnannouncedSync | null> {
    const { rows } = await sql<Record<'id' | 'changes_after' | 'changes_up_to' | 'announced_to', string>>(
      tx.manager,
      `SELECT id, changes_after, changes_up_to, announced_to FROM catalog_syncs
       WHERE announced_to IS NOT NULL ORDER BY ended_at LIMIT 1 FOR UPDATE SKIP LOCKED`,
    );
    const [row] = rows;
    if (!row) return null;
    return {
      id: row.id,
      after: toSafeInteger(row.changes_after),
      upTo: toSafeInteger(row.changes_up_to),
      announcedTo: row.announced_to,
    };
  }

  /** @param partnerId the last partner that has the event; null when all have it */
  async noteAnnounced(tx: Tx, id: string, partnerId: string | null): Promise<void> {
    await sql(tx.manager, 'UPDATE catalog_syncs SET announced_to = $2 WHERE id = $1', [id, partnerId]);
  }

  /**
   * Ends a synchronization that `tx` holds. Its changes, up to this position of the log, are then announced.
   */
  async end(
    tx: Tx,
    id: string,
    result: Readonly<Record<string, SyncOutcome>>,
    position: number,
  ): Promise<void> {
    const status = Object.values(result).some((outcome) => 'error' in outcome) ? 'failed' : 'completed';
    await sql(
      tx.manager,
      `UPDATE catalog_syncs SET status = $2, ended_at = now(), lease_until = NULL, result = $3::jsonb,
         changes_up_to = $4::bigint, announced_to = CASE WHEN changes_after < $4::bigint THEN '' END
       WHERE id = $1`,
      [id, status, JSON.stringify(result), position],
    );
  }

  /** Each provider's error in the newest ended synchronization that included it; null for none. */
  async lastErrors(providers: readonly string[]): Promise<ReadonlyMap<string, SyncError | null>> {
    const { rows } = await sql<{ name: string; error: SyncError | null }>(
      this.manager,
      `SELECT name, (SELECT coalesce(s.result -> name ->> 'error', s.result -> name ->> 'warning') FROM catalog_syncs s
                     WHERE s.started_at IS NOT NULL AND s.ended_at IS NOT NULL AND s.result ? name
                     ORDER BY s.started_at DESC LIMIT 1) AS error
       FROM unnest($1::text[]) AS name`,
      [providers],
    );
    return new Map(rows.map(({ name, error }) => [name, error]));
  }

  async list(limit: number): Promise<readonly CatalogSyncEntity[]> {
    return this.manager.find(CatalogSyncEntity, { order: { requestedAt: 'DESC' }, take: limit });
  }

  /**
   * While workers with old and new settings run side by side, only the newest worker requests a synchronization for its
   * settings, and only a worker with the same settings retries a failed one. Otherwise they would undo each other's
   * catalog forever.
   */
  private async beginScheduled(
    tx: Tx,
    intervalMs: number,
    { digest, ageMs, leaseMs }: SyncSettings,
  ): Promise<RunningSync | null> {
    const { rows } = await sql<{ id: string; attempt: number }>(
      tx.manager,
      `INSERT INTO catalog_syncs (id, status, attempt, started_at, lease_until, settings, worker_since)
       SELECT $1, 'running', 1, now(), now() + $5 * interval '1 millisecond', $3, me.since
       FROM (SELECT now() - $4 * interval '1 millisecond' AS since) AS me
       LEFT JOIN LATERAL (SELECT status, started_at, ended_at, settings, worker_since FROM catalog_syncs
                          WHERE started_at IS NOT NULL ORDER BY started_at DESC LIMIT 1) AS last ON true
       WHERE (last.started_at IS NULL
              OR last.started_at <= now() - $2 * interval '1 millisecond'
              OR (last.status = 'failed' AND last.settings = $3
                  AND last.ended_at <= now() - $6 * interval '1 millisecond')
              OR (last.settings IS DISTINCT FROM $3
                  AND (last.worker_since IS NULL OR last.worker_since < me.since)))
         AND NOT EXISTS (SELECT 1 FROM catalog_syncs WHERE status IN ('requested', 'running'))
       RETURNING id, attempt`,
      [newId('syn'), intervalMs, digest, ageMs, leaseMs, REPEAT_MS],
    );
    return rows[0] ? { ...rows[0], leaseMs } : null;
  }
}
