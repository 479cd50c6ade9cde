import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { prepared, send, sql, type Tx } from '../database/index.js';
import type { IdempotencyKey, RenderedResponse } from './idempotency-key.js';

/** A finished call as stored for replays. */
export interface StoredResponse {
  readonly fingerprint: Buffer;
  readonly status: number;
  readonly contentType: string;
  readonly location: string | null;
  readonly body: string;
  readonly requestId: string;
}

interface StoredResponseRow {
  fingerprint: Buffer;
  status: number;
  content_type: string;
  location: string | null;
  body: string;
  request_id: string;
}

/** Retention of a key from completion on (spec section 5, D20). */
const RETENTION = "interval '24 hours'";

const CLAIM = prepared(`
  INSERT INTO idempotency_keys AS k (scope, key, fingerprint, request_id, expires_at)
  VALUES ($1, $2, $3, $4, now() + ${RETENTION})
  ON CONFLICT (scope, key) DO UPDATE
    SET fingerprint = EXCLUDED.fingerprint, request_id = EXCLUDED.request_id, expires_at = EXCLUDED.expires_at,
        status = NULL, content_type = NULL, location = NULL, body = NULL
  WHERE k.expires_at <= now()`);

const COMPLETE = prepared(`
  UPDATE idempotency_keys
  SET status = $3, content_type = $4, location = $5, body = $6, expires_at = clock_timestamp() + ${RETENTION}
  WHERE scope = $1 AND key = $2`);

const FIND = prepared(`
  SELECT fingerprint, status, content_type, location, body, request_id
  FROM idempotency_keys WHERE scope = $1 AND key = $2 AND status IS NOT NULL AND expires_at > now()`);

/** SQL of `idempotency_keys`. */
@Injectable()
export class IdempotencyKeysRepository {
  /**
   * Claims the key; false when a finished call holds it. Waits for another transaction's uncommitted claim, until
   * `lock_timeout`. A key past its retention is claimed too, because the purge may lag.
   */
  async claim(manager: EntityManager, key: IdempotencyKey & { key: string }): Promise<boolean> {
    const { affected } = await sql(manager, CLAIM, [key.scope, key.key, key.fingerprint, key.requestId]);
    return affected === 1;
  }

  /** Stores the response in the transaction that claimed the key. It is sent in the same socket write as the COMMIT. */
  complete(tx: Tx, key: IdempotencyKey & { key: string }, response: RenderedResponse): void {
    const { status, contentType, location, body } = response;
    send(tx, COMPLETE, [key.scope, key.key, status, contentType, location, body]);
  }

  async find(manager: EntityManager, scope: string, key: string): Promise<StoredResponse | null> {
    const { rows } = await sql<StoredResponseRow>(manager, FIND, [scope, key]);
    const row = rows[0];
    return row ? { ...row, contentType: row.content_type, requestId: row.request_id } : null;
  }

  /** Deletes up to `limit` keys past their retention and returns their number. */
  async purgeExpired(manager: EntityManager, limit: number): Promise<number> {
    const { affected } = await sql(
      manager,
      `DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM idempotency_keys WHERE expires_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED))`,
      [limit],
    );
    return affected;
  }
}
