import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { Pool } from 'pg';
import { type EntityManager, IsNull } from 'typeorm';
import { newId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import type { Page } from '../common/page.js';
import type { KeyScope } from '../common/scopes.js';
import { EDGE_POOL, KeysetPages, type ListOptions, sql, type Tx } from '../infra/database/index.js';
import { ApiKeyEntity } from './api-key.entity.js';
import type { KeyMaterial } from './key-material.js';

/** A key's settings; null for no name, no expiry, no restriction (D15, D62). */
export interface KeyTerms {
  readonly partnerId: string;
  readonly mode: Mode;
  readonly name: string | null;
  readonly expiresAt: Date | null;
  readonly allowedCidrs: readonly string[] | null;
  readonly scopes: readonly KeyScope[] | null;
  readonly spendLimitAmount: number | null;
  readonly spendLimitCurrency: string | null;
  /** Only for a successor: the first key of its chain. */
  readonly firstKeyId: string | null;
}

/** Neither revoked nor expired, by the database's clock of this statement (D40). */
const valid = (key: string): string =>
  `${key}.revoked_at IS NULL AND (${key}.expires_at IS NULL OR ${key}.expires_at > clock_timestamp())`;

/** Counts of uses stop here; this value means "at least". */
export const MAX_USES = 10_000;

/** SQL of `api_keys`, except the key check of every call (auth) and `last_used_at` (LastUsedThrottle). */
@Injectable()
export class ApiKeysRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  async insert(
    tx: Tx,
    terms: KeyTerms,
    { hash, last4 }: KeyMaterial,
    createdBy: string,
  ): Promise<ApiKeyEntity> {
    const id = newId('key');
    // Pick the fields by name: the terms may be a whole entity, whose other fields belong to another key.
    const { partnerId, mode, name, expiresAt, spendLimitAmount, spendLimitCurrency, firstKeyId } = terms;
    const allowedCidrs = terms.allowedCidrs && [...terms.allowedCidrs];
    const scopes = terms.scopes && [...terms.scopes];
    await tx.manager.insert(ApiKeyEntity, {
      id,
      partnerId,
      mode,
      name,
      expiresAt,
      allowedCidrs,
      scopes,
      spendLimitAmount,
      spendLimitCurrency,
      firstKeyId,
      hash,
      last4,
      createdBy,
    });
    return tx.manager.findOneByOrFail(ApiKeyEntity, { id });
  }

  /**
   * Counts the partner's valid keys in this mode, excluding replaced ones in their grace period (see
   * ApiKeysService.rotate).
   */
  async countActive(tx: Tx, partnerId: string, mode: Mode): Promise<number> {
    return tx.manager
      .createQueryBuilder(ApiKeyEntity, 'k')
      .where({ partnerId, mode, replacedBy: IsNull() })
      .andWhere(valid('k'))
      .getCount();
  }

  /** Lists valid keys that expire within `days`, by id after `after`, without replaced ones in their grace period. */
  async listExpiring(days: number, after: string, limit: number): Promise<ApiKeyEntity[]> {
    return this.manager
      .createQueryBuilder(ApiKeyEntity, 'k')
      .where('k.revoked_at IS NULL AND k.replaced_by IS NULL AND k.expires_at > now()')
      .andWhere(`k.expires_at <= now() + :days * interval '1 day' AND k.id > :after`, { days, after })
      .orderBy('k.id')
      .limit(limit)
      .getMany();
  }

  /** Those of the keys that are in use until they expire, by their ids. */
  async listExpiringByIds(ids: readonly string[]): Promise<ReadonlyMap<string, ApiKeyEntity>> {
    if (ids.length === 0) return new Map();
    const keys = await this.manager
      .createQueryBuilder(ApiKeyEntity, 'k')
      .where('k.id IN (:...ids)', { ids })
      .andWhere('k.revoked_at IS NULL AND k.replaced_by IS NULL AND k.expires_at > now()')
      .getMany();
    return new Map(keys.map((key) => [key.id, key]));
  }

  async findById(tx: Tx, partnerId: string, id: string): Promise<ApiKeyEntity | null> {
    return tx.manager.findOneBy(ApiKeyEntity, { id, partnerId });
  }

  /** False when there is no such key or it is revoked already. */
  async revoke(tx: Tx, partnerId: string, id: string): Promise<boolean> {
    const open = { id, partnerId, revokedAt: IsNull() };
    const { affected } = await tx.manager.update(ApiKeyEntity, open, {
      revokedAt: () => 'clock_timestamp()',
    });
    return affected === 1;
  }

  /**
   * Gives a valid key a successor and ends it after the grace period. Returns false if the key is no longer valid or
   * already has a successor.
   */
  async replace(tx: Tx, id: string, successorId: string, graceSeconds: number): Promise<boolean> {
    const { affected } = await tx.manager
      .createQueryBuilder()
      .update(ApiKeyEntity)
      .set({
        replacedBy: successorId,
        expiresAt: () => 'least(expires_at, clock_timestamp() + make_interval(secs => :graceSeconds))',
      })
      .where({ id, replacedBy: IsNull() })
      .andWhere(valid('api_keys'))
      .setParameters({ graceSeconds })
      .execute();
    return affected === 1;
  }

  /**
   * Ends the grace period of the key that `successor` has replaced, and of the earliest replaced keys of its partner
   * and mode beyond `limit`. Returns the ids of the revoked keys.
   */
  async endGraces(tx: Tx, successor: ApiKeyEntity, limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      tx.manager,
      `UPDATE api_keys k SET revoked_at = clock_timestamp(), updated_at = now()
       WHERE k.partner_id = $1 AND ${valid('k')} AND (k.replaced_by = $3 OR k.id IN (
         SELECT g.id FROM api_keys g
         WHERE g.partner_id = $1 AND g.mode = $2 AND g.replaced_by IS NOT NULL AND g.replaced_by <> $3 AND ${valid('g')}
         ORDER BY g.updated_at DESC, g.id DESC OFFSET $4))
       RETURNING k.id`,
      [successor.partnerId, successor.mode, successor.id, limit],
    );
    return rows.map(({ id }) => id);
  }

  /** Counts each key's calls in the last 24 hours, up to MAX_USES, in one statement. */
  async usesOf(partnerId: string, keyIds: readonly string[], tx?: Tx): Promise<Map<string, number>> {
    const { rows } = await sql<{ id: string; uses: number }>(
      tx?.manager ?? this.manager,
      `SELECT k.id, u.uses FROM unnest($2::text[]) AS k (id)
       CROSS JOIN LATERAL (
         SELECT count(*)::int AS uses FROM (
           SELECT 1 FROM api_calls c
           WHERE c.partner_id = $1 AND c.key_id = k.id AND c.created_at >= now() - interval '24 hours'
           LIMIT ${MAX_USES}) AS found
       ) AS u`,
      [partnerId, keyIds],
    );
    return new Map(rows.map(({ id, uses }) => [id, uses]));
  }

  async list(partnerId: string, mode: Mode | undefined, options: ListOptions): Promise<Page<ApiKeyEntity>> {
    const query = this.manager
      .createQueryBuilder(ApiKeyEntity, 't')
      .where('t.partnerId = :partnerId', { partnerId });
    if (mode !== undefined) query.andWhere('t.mode = :mode', { mode });
    return this.pages.list(query, options);
  }
}

/**
 * Sorted, so that all processes lock in the same order. The guard limits writes to one per minute and key, however many
 * processes serve the key.
 */
const TOUCH = `
  UPDATE api_keys k SET last_used_at = now()
  FROM (SELECT id FROM api_keys
        WHERE id = ANY ($1::text[]) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
        ORDER BY id FOR NO KEY UPDATE) AS stale
  WHERE k.id = stale.id`;

/** Writes when keys were last used, on the edge's pool, because every call may need it (D38). */
@Injectable()
export class LastUsedRepository {
  constructor(@Inject(EDGE_POOL) private readonly pool: Pool) {}

  async touch(keyIds: readonly string[]): Promise<void> {
    await this.pool.query({ name: 'touch-keys', text: TOUCH, values: [keyIds] });
  }
}
