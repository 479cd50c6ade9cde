import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { newId } from '../common/ids.js';
import { sql, type Tx } from '../infra/database/index.js';
import { CatalogSyncEntity, type SyncOutcome } from './catalog-sync.entity.js';
import type { SyncSettings } from './sync-settings.js';

/** Longer than any synchronisation; a worker that died is taken over after it. */
const LEASE = "interval '10 minutes'";

/** SQL of `catalog_syncs`. */
@Injectable()
export class CatalogSyncsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Asks for a synchronisation; the one that waits already when there is one. */
  async request(tx: Tx): Promise<CatalogSyncEntity> {
    // An update of nothing locks the one that waits: no worker takes it up between this and the read.
    const { rows } = await sql<{ id: string }>(
      tx.manager,
      `INSERT INTO catalog_syncs AS s (id, status) VALUES ($1, 'requested')
       ON CONFLICT (status) WHERE status = 'requested' DO UPDATE SET requested_at = s.requested_at
       RETURNING s.id`,
      [newId('syn')],
    );
    return tx.manager.findOneByOrFail(CatalogSyncEntity, { id: rows[0]!.id });
  }

  /** Asks for one unless one waits already, or has begun after `since`, or in the last `restMs`, and not failed. */
  async requestUnlessBegunSince(tx: Tx, since: Date, restMs = 0): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO catalog_syncs (id, status)
       SELECT $1, 'requested'
       WHERE NOT EXISTS (SELECT 1 FROM catalog_syncs
                         WHERE started_at > least($2, now() - $3 * interval '1 millisecond') AND status <> 'failed')
       ON CONFLICT (status) WHERE status = 'requested' DO NOTHING`,
      [newId('syn'), since, restMs],
    );
  }

  /**
   * Takes up what was asked for, or begins one of its own when the last is `intervalMs` old or was made with settings
   * that are older than this worker's; null: nothing to do.
   */
  async begin(tx: Tx, intervalMs: number, settings: SyncSettings): Promise<string | null> {
    await sql(tx.manager, `SELECT pg_advisory_xact_lock(hashtext('catalog_syncs'))`);
    const { rows } = await sql<{ id: string }>(
      tx.manager,
      `UPDATE catalog_syncs SET status = 'running', started_at = now(), lease_until = now() + ${LEASE},
         settings = $1, worker_since = now() - $2 * interval '1 millisecond'
       WHERE id = (SELECT id FROM catalog_syncs
                   WHERE status = 'requested' OR (status = 'running' AND lease_until <= now())
                   ORDER BY requested_at LIMIT 1)
         AND NOT EXISTS (SELECT 1 FROM catalog_syncs WHERE status = 'running' AND lease_until > now())
       RETURNING id`,
      [settings.digest, settings.ageMs],
    );
    return rows[0]?.id ?? this.beginScheduled(tx, intervalMs, settings);
  }

  async end(tx: Tx, id: string, result: Readonly<Record<string, SyncOutcome>>): Promise<void> {
    const status = Object.values(result).some((outcome) => 'error' in outcome) ? 'failed' : 'completed';
    await sql(
      tx.manager,
      `UPDATE catalog_syncs SET status = $2, ended_at = now(), lease_until = NULL, result = $3::jsonb WHERE id = $1`,
      [id, status, JSON.stringify(result)],
    );
  }

  async list(limit: number): Promise<readonly CatalogSyncEntity[]> {
    return this.manager.find(CatalogSyncEntity, { order: { requestedAt: 'DESC' }, take: limit });
  }

  /**
   * While workers of old and new settings run side by side, only the one that began last asks for its settings: else
   * they would undo each other's catalogue for ever.
   */
  private async beginScheduled(
    tx: Tx,
    intervalMs: number,
    { digest, ageMs }: SyncSettings,
  ): Promise<string | null> {
    const { rows } = await sql<{ id: string }>(
      tx.manager,
      `INSERT INTO catalog_syncs (id, status, started_at, lease_until, settings, worker_since)
       SELECT $1, 'running', now(), now() + ${LEASE}, $3, me.since
       FROM (SELECT now() - $4 * interval '1 millisecond' AS since) AS me
       LEFT JOIN LATERAL (SELECT started_at, settings, worker_since FROM catalog_syncs
                          WHERE started_at IS NOT NULL ORDER BY started_at DESC LIMIT 1) AS last ON true
       WHERE (last.started_at IS NULL
              OR last.started_at <= now() - $2 * interval '1 millisecond'
              OR (last.settings IS DISTINCT FROM $3
                  AND (last.worker_since IS NULL OR last.worker_since < me.since)))
         AND NOT EXISTS (SELECT 1 FROM catalog_syncs WHERE status IN ('requested', 'running'))
       RETURNING id`,
      [newId('syn'), intervalMs, digest, ageMs],
    );
    return rows[0]?.id ?? null;
  }
}
