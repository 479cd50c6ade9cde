import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Orders and top-ups are claimed by partner and mode (D41). Both indexes hold only what is owed, a few rows. */
export class SeparateModesOfWork1763700000021 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX orders_due;
      CREATE INDEX orders_due ON orders (partner_id, mode, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
      DROP INDEX topups_due;
      CREATE INDEX topups_due ON topups (partner_id, mode, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX orders_due;
      CREATE INDEX orders_due ON orders (partner_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
      DROP INDEX topups_due;
      CREATE INDEX topups_due ON topups (partner_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
    `);
  }
}
