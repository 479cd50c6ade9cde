import type { TestDatabase } from '../harness/index.js';

/** One order in this many is issued here and unknown to the provider. The others failed on both sides. */
export const ONE_WRONG_OF = 10;

export const referenceOf = (n: number): string => `many-${n}`;

/**
 * Inserts live orders without a price that ended long ago and were touched now, so that only the provider checks apply.
 * Their ids sort by number.
 */
export async function insertOrders({ pool }: TestDatabase, count: number): Promise<void> {
  await pool.query(`INSERT INTO partners (id, name) VALUES ('ptn_many', 'Many') ON CONFLICT DO NOTHING`);
  await pool.query(
    `INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, quantity_issued, quantity_failed,
       unit_price_amount, currency, provider, provider_reference, upstream_package_id, upstream_placed_at,
       accepted_request_id, validity_days, activation_policy, created_at, issued_at, failed_at, updated_at)
     SELECT 'ord_' || lpad(n::text, 26, '0'), 'ptn_many', 'live', CASE WHEN wrong THEN 'issued' ELSE 'failed' END, 'pkg_x', 1,
       wrong::int, (NOT wrong)::int, 0, 'USD', 'zendit', 'many-' || n, 'offer', now() - interval '400 days', 'req_many', 7,
       'first_use', now() - interval '400 days', CASE WHEN wrong THEN now() - interval '400 days' END,
       CASE WHEN NOT wrong THEN now() - interval '400 days' END, now() - interval '1 second'
     FROM (SELECT n, n % $2::int = 0 AS wrong FROM generate_series(1, $1::int) AS n) AS numbers`,
    [count, ONE_WRONG_OF],
  );
  await pool.query(
    `INSERT INTO esims (id, partner_id, mode, order_id, package_id, iccid, status, profile_status, install_secrets,
       unlimited, total_bytes, usage_source, validity_days, activation_policy, provider, provider_esim_id)
     SELECT 'esim_' || right(id, 26), partner_id, mode, id, package_id, '8900000000' || lpad(right(id, 6), 9, '0'), 'issued',
       'released', '', false, 1, 'poll', 7, 'first_use', provider, provider_reference || '-1'
     FROM orders WHERE status = 'issued' AND partner_id = 'ptn_many'`,
  );
}
