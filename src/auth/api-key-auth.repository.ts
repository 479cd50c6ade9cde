import { Inject, Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import type { Mode } from '../common/mode.js';
import type { KeyScope } from '../common/scopes.js';
import { EDGE_POOL } from '../infra/database/index.js';
import type { BucketState, RateLimitShape } from './rate-limit.js';

const NOW = '(EXCLUDED.tat - EXCLUDED.granted * EXCLUDED.t)';
/**
 * Caps `tat` at that of an empty bucket. After a clock was set back, a future `tat` would otherwise block the key until
 * then. The clock is read again under the row's lock, because this statement may be older than the charge it waited
 * for.
 */
const TAT = `least(greatest(g.tat, ${NOW}),
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + EXCLUDED.burst * EXCLUDED.t)`;
const GRANTED = `greatest(0, least(EXCLUDED.granted, (${NOW} + EXCLUDED.burst * EXCLUDED.t - ${TAT}) / EXCLUDED.t))`;

/**
 * GCRA on `rate_buckets`, for distinct keys in a fixed order (D21). `charged` has key and n (calls that want a token);
 * `tat` is the time in microseconds at which the bucket is full again. Everything is computed from EXCLUDED, whose tat
 * is now + granted * t, with granted = least(n, burst).
 * ORDER BY key gives all processes one lock order; without it the statements deadlock.
 */
const CHARGE = `
  INSERT INTO rate_buckets AS g (key, tat, t, burst, granted)
  SELECT c.key, clock.now + least(c.n, $1::int) * $2::bigint, $2::bigint, $1::int, least(c.n, $1::int)
  FROM charged c
  CROSS JOIN (SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now) AS clock
  ORDER BY c.key COLLATE "C"
  ON CONFLICT (key) DO UPDATE SET
    t = EXCLUDED.t,
    burst = EXCLUDED.burst,
    granted = ${GRANTED},
    tat = ${TAT} + EXCLUDED.t * ${GRANTED}
  RETURNING key, granted, tat, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now_us`;

const KNOWN = `
  SELECT a.nth, a.n, k.id AS key_id, k.partner_id, k.mode, p.name AS partner_name, p.status = 'active' AS active,
         k.scopes, k.spend_limit_amount IS NOT NULL AS has_spend_limit,
         coalesce(k.allowed_cidrs IS NULL OR a.address <<= ANY (k.allowed_cidrs), false) AS address_allowed
  FROM unnest($3::bytea[], $4::inet[], $5::int[]) WITH ORDINALITY AS a (hash, address, n, nth)
  JOIN api_keys k ON k.hash = a.hash
  JOIN partners p ON p.id = k.partner_id
  WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())`;

/**
 * $1 burst, $2 microseconds per token, $3 key hashes, $4 addresses, $5 calls: checks and charges keys in one statement.
 */
const CHECK_AND_CHARGE = `
  WITH known AS MATERIALIZED (${KNOWN}),
  charged AS (
    -- who is refused with 403 pays as well (D45)
    SELECT key_id AS key, sum(n)::int AS n FROM known GROUP BY key_id
  ),
  bucket AS (${CHARGE})
  SELECT known.*, bucket.granted, bucket.tat, bucket.now_us FROM known JOIN bucket ON bucket.key = known.key_id`;

/** Like CHECK_AND_CHARGE without the charge, because the buckets are in Redis. */
const CHECK_ONLY = `SELECT known.* FROM (${KNOWN}) AS known WHERE $1::int > 0 AND $2::bigint > 0`;

/** $1 burst, $2 microseconds per token, $3 keys, $4 calls: charges only, after Redis has failed. */
const CHARGE_ONLY = `
  WITH charged AS (SELECT * FROM unnest($3::text[], $4::int[]) AS c (key, n))
  ${CHARGE}`;

/** A key presented from one address by `calls` calls. */
export interface PresentedKey {
  readonly hash: Buffer;
  readonly address: string | null;
  readonly calls: number;
}

/** A valid key: neither revoked nor expired. */
export interface KnownKey {
  /** Index among the presented keys. */
  readonly index: number;
  readonly keyId: string;
  readonly partnerId: string;
  readonly partnerName: string;
  readonly mode: Mode;
  readonly partnerActive: boolean;
  readonly addressAllowed: boolean;
  /** Null holds every scope. */
  readonly scopes: readonly KeyScope[] | null;
  readonly hasSpendLimit: boolean;
}

interface KnownRow {
  nth: string;
  key_id: string;
  partner_id: string;
  partner_name: string;
  mode: Mode;
  active: boolean;
  address_allowed: boolean;
  scopes: KeyScope[] | null;
  has_spend_limit: boolean;
}

interface BucketRow {
  granted: number;
  tat: string;
  now_us: string;
}

/** Statements that run before the body is read, prepared once per connection of a separate pool. */
@Injectable()
export class ApiKeyAuthRepository {
  constructor(@Inject(EDGE_POOL) private readonly pool: Pool) {}

  /** Checks keys and charges their buckets in one statement. There is no cache, so a revocation is immediate (D13). */
  async checkAndCharge(
    keys: readonly PresentedKey[],
    shape: RateLimitShape,
  ): Promise<{ known: KnownKey[]; buckets: Map<string, BucketState> }> {
    const { rows } = await this.pool.query<KnownRow & BucketRow>({
      name: 'check-and-charge',
      text: CHECK_AND_CHARGE,
      values: toParameters(keys, shape),
    });
    return {
      known: rows.map(toKnownKey),
      buckets: new Map(rows.map((row) => [row.key_id, toBucketState(row)])),
    };
  }

  async check(keys: readonly PresentedKey[], shape: RateLimitShape): Promise<KnownKey[]> {
    const { rows } = await this.pool.query<KnownRow>({
      name: 'check-only',
      text: CHECK_ONLY,
      values: toParameters(keys, shape),
    });
    return rows.map(toKnownKey);
  }

  async charge(calls: ReadonlyMap<string, number>, shape: RateLimitShape): Promise<Map<string, BucketState>> {
    const { rows } = await this.pool.query<BucketRow & { key: string }>({
      name: 'charge-only',
      text: CHARGE_ONLY,
      values: [shape.burst, shape.microsecondsPerToken, [...calls.keys()], [...calls.values()]],
    });
    return new Map(rows.map((row) => [row.key, toBucketState(row)]));
  }
}

function toParameters(keys: readonly PresentedKey[], shape: RateLimitShape): unknown[] {
  return [
    shape.burst,
    shape.microsecondsPerToken,
    keys.map((key) => key.hash),
    keys.map((key) => key.address),
    keys.map((key) => key.calls),
  ];
}

function toKnownKey(row: KnownRow): KnownKey {
  return {
    index: Number(row.nth) - 1,
    keyId: row.key_id,
    partnerId: row.partner_id,
    partnerName: row.partner_name,
    mode: row.mode,
    partnerActive: row.active,
    addressAllowed: row.address_allowed,
    scopes: row.scopes,
    hasSpendLimit: row.has_spend_limit,
  };
}

function toBucketState(row: BucketRow): BucketState {
  return { granted: row.granted, tatUs: Number(row.tat), nowUs: Number(row.now_us) };
}
