import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Wholesalers' package texts, and the top-ups that fit each base package, if the wholesaler specifies them. */
export class TellPackageTerms1763700000017 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE packages
        ADD COLUMN speed_policy text COLLATE "C" CHECK (char_length(speed_policy) <= 200),
        ADD COLUMN notes text COLLATE "C" CHECK (char_length(notes) <= 500);

      -- How top-ups are matched with a package: by the places they cover, or by the wholesaler's word for each base
      -- package, which is asked for (topups_asked_at: when last), sooner when somebody wants it (topups_wanted_at).
      ALTER TABLE package_sources
        ADD COLUMN fits text COLLATE "C" NOT NULL DEFAULT 'coverage' CHECK (fits IN ('coverage', 'list')),
        ADD COLUMN topups_asked_at timestamptz,
        ADD COLUMN topups_wanted_at timestamptz,
        -- another worker asks now, or the wholesaler gave no answer
        ADD COLUMN topups_not_before timestamptz;

      CREATE TABLE topup_fits (
        base_id text COLLATE "C" NOT NULL,
        topup_id text COLLATE "C" NOT NULL,
        PRIMARY KEY (base_id, topup_id)
      );
      CREATE INDEX topup_fits_topup ON topup_fits (topup_id);

      -- This wholesaler's top-ups were matched by coverage, which it does not promise: sold again once it named them.
      UPDATE package_sources SET fits = 'list' WHERE provider = 'esim_access';
      UPDATE packages p SET available = false, updated_at = now()
      FROM package_sources s
      WHERE s.package_id = p.id AND s.provider = 'esim_access' AND s.kind = 'topup' AND p.mode = 'live' AND p.available;
      UPDATE catalog_versions SET version = version + 1;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE topup_fits;
      ALTER TABLE package_sources DROP COLUMN fits, DROP COLUMN topups_asked_at, DROP COLUMN topups_wanted_at,
        DROP COLUMN topups_not_before;
      ALTER TABLE packages DROP COLUMN speed_policy, DROP COLUMN notes;
    `);
  }
}
