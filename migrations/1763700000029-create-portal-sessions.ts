import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Sessions of the partner portal (D50), the actor of a session, and the creator of a key. */
export class CreatePortalSessions1763700000029 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE portal_sessions (
        id text COLLATE "C" PRIMARY KEY,
        partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
        -- the name of the admin token that made it
        minted_by text COLLATE "C" NOT NULL,
        -- a user of the portal team
        actor_id text COLLATE "C" NOT NULL,
        actor_name text COLLATE "C",
        scopes text[] COLLATE "C" NOT NULL,
        modes text[] COLLATE "C" NOT NULL,
        return_url text COLLATE "C",
        -- SHA-256; neither the code nor the cookie is kept
        code_hash bytea NOT NULL UNIQUE,
        code_expires_at timestamptz NOT NULL,
        token_hash bytea UNIQUE,
        exchanged_at timestamptz,
        revoked_at timestamptz,
        expires_at timestamptz NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX portal_sessions_list ON portal_sessions (partner_id, created_at DESC, id DESC);
      CREATE INDEX portal_sessions_expiry ON portal_sessions (expires_at);

      -- Sessions from before the last suspension stay dead after it.
      ALTER TABLE partners ADD COLUMN suspended_at timestamptz;
      ALTER TABLE audit_log ADD COLUMN session_id text COLLATE "C";
      ALTER TABLE api_keys ADD COLUMN created_by text COLLATE "C";
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE api_keys DROP COLUMN created_by;
      ALTER TABLE audit_log DROP COLUMN session_id;
      ALTER TABLE partners DROP COLUMN suspended_at;
      DROP TABLE portal_sessions;
    `);
  }
}
