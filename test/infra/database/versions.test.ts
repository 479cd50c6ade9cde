import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';

/** Columns whose changes partners cannot see (D48). A new column must be listed here or be counted. */
const NOT_COUNTED: Readonly<Record<string, readonly string[]>> = {
  orders: [
    ...['data_bytes', 'validity_days', 'activation_policy', 'provider', 'provider_reference'],
    ...['upstream_package_id', 'unit_cost_micros', 'unit_cost_currency', 'upstream_placed_at'],
    ...['status_before_cancel', 'cancel_requested_at', 'upstream_attempts', 'last_error', 'next_attempt_at'],
    ...[
      'lease_until',
      'fence',
      'accepted_request_id',
      'limited_key_id',
      'traceparent',
      'updated_at',
      'install_within_days',
    ],
    'replaces',
  ],
  esims: [
    ...['install_secrets', 'validity_days', 'activation_policy', 'provider', 'provider_esim_id', 'read_at'],
    ...[
      'topped_up_at',
      'next_poll_at',
      'expiry_warning_at',
      'poll_hint_at',
      'polled_at',
      'poll_lease_until',
      'poll_fence',
      'updated_at',
      ...[
        'action_reason',
        'action_due_at',
        'action_sent_at',
        'action_fence',
        'acted_at',
        'revoked_at',
        'replaced_by',
      ],
    ],
  ],
  topups: [
    ...['provider', 'provider_reference', 'upstream_package_id', 'unit_cost_micros', 'unit_cost_currency'],
    ...['upstream_placed_at', 'attempts', 'last_error', 'next_attempt_at', 'lease_until', 'fence'],
    ...['accepted_request_id', 'limited_key_id', 'traceparent', 'updated_at'],
  ],
};
/** Columns that never change, and the version itself. */
const FIXED = ['id', 'partner_id', 'mode', 'order_id', 'days', 'auto_topup_id', 'created_at', 'version'];

/** SQL for a different value of the column's type. */
const CHANGED: Readonly<Record<string, string>> = {
  text: `coalesce(%s, '') || '0'`,
  integer: 'coalesce(%s, 0) + 1',
  bigint: 'coalesce(%s, 0) + 1',
  boolean: 'NOT %s',
  jsonb: `coalesce(%s, '{}') || '{"again": "yes"}'`,
  'smallint[]': '%s || 50::smallint',
  'timestamp with time zone': `coalesce(%s, now()) + interval '1 second'`,
};

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query(`
    INSERT INTO partners (id, name) VALUES ('ptn_1', 'One');
    INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, unit_price_amount, currency, provider,
                        provider_reference, upstream_package_id, accepted_request_id, validity_days, activation_policy)
    VALUES ('1', 'ptn_1', 'live', 'issued', 'pkg_a', 5, 9, 'USD', 'zendit', 'ref_1', 'pkg_a', 'req_1', 1, 'on_install');
    INSERT INTO esims (id, partner_id, mode, order_id, package_id, iccid, status, profile_status, install_secrets,
                       unlimited, total_bytes, usage_source, validity_days, activation_policy, provider, provider_esim_id)
    VALUES ('1', 'ptn_1', 'live', '1', 'pkg_a', '891030000000123456', 'issued', 'released', '', false, 1, 'poll', 1,
            'on_install', 'zendit', '1');
    INSERT INTO topups (id, partner_id, mode, esim_id, iccid, package_id, status, price_amount, currency,
                        validity_added_days, provider, provider_reference, upstream_package_id, accepted_request_id)
    VALUES ('1', 'ptn_1', 'live', '1', '891030000000123456', 'pkg_b', 'pending', 1, 'USD', 1, 'zendit', 'ref_2', 'pkg_b',
            'req_1');`);
});
afterAll(() => database.drop());

/** The version after only this column was changed. Checks and keys are disabled, and the change is rolled back. */
async function versionAfter(table: string, column: string, type: string): Promise<number> {
  const client = await database.pool.connect();
  try {
    await client.query('BEGIN');
    const { rows: constraints } = await client.query<{ name: string }>(
      `SELECT conname AS name FROM pg_constraint WHERE conrelid = $1::regclass AND contype IN ('c', 'f')`,
      [table],
    );
    for (const { name } of constraints) await client.query(`ALTER TABLE ${table} DROP CONSTRAINT "${name}"`);
    const value = CHANGED[type]?.replaceAll('%s', column);
    if (value === undefined) throw new Error(`no other value is known for ${type}`);
    const { rows } = await client.query<{ version: number }>(
      `UPDATE ${table} SET ${column} = ${value} WHERE id = '1' RETURNING version`,
    );
    return rows[0]!.version;
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
}

describe('the version of an object', () => {
  it.each(Object.keys(NOT_COUNTED))('increments with each change that partners see, in %s', async (table) => {
    const { rows: columns } = await database.pool.query<{ name: string; type: string }>(
      `SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
       WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
      [table],
    );
    const names = columns.map(({ name }) => name);
    expect(NOT_COUNTED[table]!.filter((name) => !names.includes(name))).toEqual([]);
    const counted: string[] = [];
    for (const { name, type } of columns) {
      if (FIXED.includes(name)) continue;
      if ((await versionAfter(table, name, type)) === 2) counted.push(name);
    }
    const expected = names.filter((name) => !FIXED.includes(name) && !NOT_COUNTED[table]!.includes(name));
    expect(counted.sort()).toEqual(expected.sort());
  });

  it('does not change when a statement writes the same values', async () => {
    const { rows } = await database.pool.query(
      `UPDATE orders SET status = status, updated_at = now(), metadata = '{}' WHERE id = '1' RETURNING version`,
    );
    expect(rows).toEqual([{ version: 1 }]);
  });

  it('increments from its old value, whatever a statement sets', async () => {
    const { rows } = await database.pool.query(
      `UPDATE orders SET status = 'canceling', version = 40 WHERE id = '1' RETURNING version`,
    );
    expect(rows).toEqual([{ version: 2 }]);
  });
});
