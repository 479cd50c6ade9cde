import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Tables for a database that was restored to an earlier time (D54): the restores, the providers' sales in the lost
 * period, and the placements to look up before they are sent.
 */
export class RestoreEpochs1763700000041 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE restore_epochs (
        id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        -- the time that the database was put back to
        restored_to timestamptz NOT NULL,
        -- from here on writes are refused and no order or top-up is worked on
        opened_at timestamptz NOT NULL DEFAULT now(),
        -- positions of events and versions of objects were moved beyond all that were given in the lost time
        moved_at timestamptz,
        completed_at timestamptz
      );
      CREATE UNIQUE INDEX restore_epochs_one_open ON restore_epochs ((true)) WHERE completed_at IS NULL;

      -- sold by a provider under a reference that the restored database does not know
      CREATE TABLE unclaimed_purchases (
        reference text COLLATE "C" PRIMARY KEY,
        provider text COLLATE "C" NOT NULL,
        kind text COLLATE "C" NOT NULL CHECK (kind IN ('order', 'topup')),
        -- null where the reference does not tell
        partner_id text COLLATE "C",
        upstream_package_id text COLLATE "C",
        -- how many of it were sold, and how many of them taken back
        sold int NOT NULL,
        taken_back int NOT NULL,
        sold_at timestamptz,
        epoch_id int NOT NULL REFERENCES restore_epochs (id),
        found_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX unclaimed_purchases_epoch ON unclaimed_purchases (epoch_id);

      -- a provider that cannot list what it sold: for eSIMs of before the restore it is looked for until then
      CREATE TABLE placement_lookups (
        provider text COLLATE "C" NOT NULL,
        kind text COLLATE "C" NOT NULL CHECK (kind IN ('order', 'topup')),
        -- what was bought from here on may not be known
        since timestamptz NOT NULL,
        restored_at timestamptz NOT NULL,
        until timestamptz NOT NULL,
        PRIMARY KEY (provider, kind)
      );

      -- The restore command replaces it with a greater one: versions that partners have seen are not given again.
      CREATE FUNCTION version_floor() RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 0';
      CREATE OR REPLACE FUNCTION count_version() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.version := greatest(OLD.version + 1, version_floor());
        RETURN NEW;
      END $$;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE OR REPLACE FUNCTION count_version() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.version := OLD.version + 1;
        RETURN NEW;
      END $$;
      DROP FUNCTION version_floor();
      DROP TABLE placement_lookups, unclaimed_purchases, restore_epochs;
    `);
  }
}
