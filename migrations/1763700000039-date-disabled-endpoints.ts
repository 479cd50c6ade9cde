import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The time at which an endpoint was disabled, because every later change moves `updated_at` (D31, D32). */
export class DateDisabledEndpoints1763700000039 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_endpoints ADD COLUMN disabled_at timestamptz');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_endpoints DROP COLUMN disabled_at');
  }
}
