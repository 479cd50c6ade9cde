import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Scopes and spend limit of API keys, and what each chain of rotated keys has spent per UTC day (D62). */
export class RestrictApiKeys1763700000080 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE api_keys
        ADD COLUMN scopes text[] COLLATE "C",
        ADD COLUMN spend_limit_amount bigint,
        ADD COLUMN spend_limit_currency text COLLATE "C",
        ADD COLUMN first_key_id text COLLATE "C";
      ALTER TABLE orders ADD COLUMN limited_key_id text COLLATE "C";
      ALTER TABLE topups ADD COLUMN limited_key_id text COLLATE "C";
      CREATE TABLE key_spending (
        first_key_id text COLLATE "C" NOT NULL,
        day date NOT NULL,
        amount bigint NOT NULL CHECK (amount >= 0),
        PRIMARY KEY (first_key_id, day)
      ) WITH (fillfactor = 50)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE key_spending');
    for (const table of ['topups', 'orders'])
      await runner.query(`ALTER TABLE ${table} DROP COLUMN limited_key_id`);
    await runner.query(`
      ALTER TABLE api_keys DROP COLUMN scopes, DROP COLUMN spend_limit_amount, DROP COLUMN spend_limit_currency,
        DROP COLUMN first_key_id`);
  }
}
