/**
 * GCRA on `rate_buckets`, for distinct keys in one order (D21). `charged` has key and n (calls that want a token);
 * `tat` is the time in microseconds at which the bucket is full again. Everything is computed from EXCLUDED:
 * granted = least(n, burst), now = EXCLUDED.tat - EXCLUDED.granted * EXCLUDED.t.
 * ORDER BY key gives all processes one lock order; without it statements deadlock.
 */
const CHARGE = `
  INSERT INTO rate_buckets AS g (key, tat, t, burst, granted)
  SELECT c.key, clock.now + least(c.n, $1::int) * $2::bigint, $2::bigint, $1::int, least(c.n, $1::int)
  FROM charged c
  CROSS JOIN (SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now) AS clock
  ORDER BY c.key
  ON CONFLICT (key) DO UPDATE SET
    t = EXCLUDED.t,
    burst = EXCLUDED.burst,
    granted = greatest(0, least(EXCLUDED.granted,
      (EXCLUDED.tat - EXCLUDED.granted * EXCLUDED.t + EXCLUDED.burst * EXCLUDED.t
        - greatest(g.tat, EXCLUDED.tat - EXCLUDED.granted * EXCLUDED.t)) / EXCLUDED.t)),
    tat = greatest(g.tat, EXCLUDED.tat - EXCLUDED.granted * EXCLUDED.t)
      + EXCLUDED.t * greatest(0, least(EXCLUDED.granted,
        (EXCLUDED.tat - EXCLUDED.granted * EXCLUDED.t + EXCLUDED.burst * EXCLUDED.t
          - greatest(g.tat, EXCLUDED.tat - EXCLUDED.granted * EXCLUDED.t)) / EXCLUDED.t))
  RETURNING key, granted, tat, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now_us`;

const KNOWN = `
  SELECT a.nth, a.n, k.id AS key_id, k.partner_id, k.mode, p.name AS partner_name, p.status = 'active' AS active,
         coalesce(k.allowed_cidrs IS NULL OR a.address <<= ANY (k.allowed_cidrs), false) AS address_allowed
  FROM unnest($3::bytea[], $4::inet[], $5::int[]) WITH ORDINALITY AS a (hash, address, n, nth)
  JOIN api_keys k ON k.hash = a.hash
  JOIN partners p ON p.id = k.partner_id
  WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())`;

/** $1 burst, $2 microseconds a token, $3 key hashes, $4 addresses, $5 calls: key check and charge in one. */
export const CHECK_AND_CHARGE = `
  WITH known AS MATERIALIZED (${KNOWN}),
  charged AS (
    SELECT key_id AS key, sum(CASE WHEN active AND address_allowed THEN n ELSE 0 END)::int AS n
    FROM known GROUP BY key_id
  ),
  bucket AS (${CHARGE})
  SELECT known.*, bucket.granted, bucket.tat, bucket.now_us FROM known JOIN bucket ON bucket.key = known.key_id`;

/** As CHECK_AND_CHARGE without the charge: the buckets are in Redis. */
export const CHECK_ONLY = `SELECT known.* FROM (${KNOWN}) AS known WHERE $1::int > 0 AND $2::bigint > 0`;

/** $1 burst, $2 microseconds a token, $3 keys, $4 calls: the charge alone, when Redis has failed. */
export const CHARGE_ONLY = `
  WITH charged AS (SELECT * FROM unnest($3::text[], $4::int[]) AS c (key, n))
  ${CHARGE}`;
