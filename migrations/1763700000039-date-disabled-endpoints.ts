import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Since when an endpoint is disabled: `updated_at` moves with every later change of it (D31, D32). */
export class DateDisabledEndpoints1763700000039 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_endpoints ADD COLUMN disabled_at timestamptz');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_endpoints DROP COLUMN disabled_at');
  }
}
