import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Phase of the attempt in flight, written only for attempts that last. The record of the attempt clears it. */
export class ShowAttemptPhases1763700000090 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_deliveries ADD COLUMN current_phase text COLLATE "C"');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_deliveries DROP COLUMN current_phase');
  }
}
