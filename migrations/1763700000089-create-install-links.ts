import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Links that let a traveler install an eSIM. They are deleted with their eSIM. */
export class CreateInstallLinks1763700000089 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE install_links (
        id text COLLATE "C" PRIMARY KEY,
        partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        esim_id text COLLATE "C" NOT NULL REFERENCES esims (id) ON DELETE CASCADE,
        token_hash bytea NOT NULL,
        locale text COLLATE "C",
        access_code_hash bytea,
        wrong_codes int NOT NULL DEFAULT 0,
        locked_until timestamptz,
        opened_count int NOT NULL DEFAULT 0,
        last_opened_at timestamptz,
        expires_at timestamptz NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE UNIQUE INDEX install_links_token ON install_links (token_hash);
      CREATE INDEX install_links_by_esim ON install_links (esim_id, created_at DESC, id DESC);
      CREATE INDEX install_links_expiry ON install_links (expires_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE install_links');
  }
}
