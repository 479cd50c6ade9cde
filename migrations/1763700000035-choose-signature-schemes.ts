import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Endpoints can request the Standard Webhooks headers in addition to those of the `document` scheme (D49). */
export class ChooseSignatureSchemes1763700000035 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE webhook_endpoints ADD COLUMN signature_schemes text[] COLLATE "C" NOT NULL DEFAULT '{document}'`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_endpoints DROP COLUMN signature_schemes');
  }
}
