import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The first failed attempt after an endpoint's last success, in the roll-up that the attempts write anyway. */
export class DateFirstFailures1763700000085 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE webhook_endpoint_stats
        ADD COLUMN failing_since timestamptz,
        ADD COLUMN failing_status_code smallint,
        ADD COLUMN failing_error text COLLATE "C"`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE webhook_endpoint_stats
        DROP COLUMN failing_since, DROP COLUMN failing_status_code, DROP COLUMN failing_error`);
  }
}
