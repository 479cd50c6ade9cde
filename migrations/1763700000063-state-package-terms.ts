import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Adds the wholesaler's statements about a package (D57). The next synchronization fills in rows written before it. */
export class StatePackageTerms1763700000063 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE packages ADD COLUMN terms jsonb NOT NULL DEFAULT '{
        "dataUnit": "decimal", "plan": "total", "fairUse": null, "exitCountries": null, "maxGeneration": null,
        "hotspot": null, "installWithinDays": null, "regionName": null, "variant": null,
        "topup": {"kinds": [], "behavior": "unknown", "maxCount": null}
      }'`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE packages DROP COLUMN terms');
  }
}
